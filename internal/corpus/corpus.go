// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// DefaultMaxSize is the limit on the decompressed bytes of one BTF or kernel image where Options
// gives none. The largest BTF seen has 27 MB, a stripped vmlinux about 70 MB. A vmlinux with debug
// information has more, see Options.DWARF.
const DefaultMaxSize = limits.PartSize

// Options configure Open. The zero value takes everything.
type Options struct {
	// MaxSize limits the decompressed bytes of one BTF, ELF file or kernel image, and of all modules of a
	// kernel together; 0 is DefaultMaxSize. What one source file unpacks to in total, the members of containers counted
	// again, is limited by limits.UnpackedRatio and limits.UnpackedSmall. All files that are read at the same time share
	// limits.UnpackedInAll.
	MaxSize int64

	// Map lets files of raw BTF be mapped into memory rather than read, where the system can. It
	// makes what File.Read yields subject to changes of the files: yield must then look at it on
	// its own goroutine only.
	Map bool

	// Modules chooses modules. The others need not even be decompressed.
	Modules *Modules

	// Select keeps the kernels that any of its selectors matches (all of them if it is empty),
	// Exclude then drops those that any of its selectors matches.
	Select, Exclude []Selector

	// As has namings for the keys of kernels; the first one that fits a path counts.
	As []*Naming

	// Extras requests the configuration and symbols of kernels.
	Extras bool

	// DWARF makes BTF of kernels that have DWARF and no BTF. If it is nil, such kernels are left out.
	DWARF *Encoder

	met *met // which kernels the selectors match; set by Open
}

// Corpus lists where the kernels are. It is immutable and safe for concurrent use.
type Corpus struct {
	Sources []string // as given to Open

	// Files are the units of work, sorted by path. They are independent of each other.
	Files []*File

	// Skipped lists, sorted by path, what looks like a kernel but is not, except where the path has a key that the selectors exclude.
	Skipped []*Error

	Ignored    int // files that have nothing to do with BTF: markers, checksums, scripts
	Unselected int // files whose key, known from their path, the selectors leave out

	seconds []*File // those that Distinct took out of Files

	met     *met
	modules *Modules // of Options
}

// Open finds the kernels in sources, which are files and directories. It reads the first bytes of each file but decompresses nothing. A
// source that cannot be read is an error, and so is a corpus without a candidate. Anything else is in Skipped. Some files of a
// directory, such as a .tar.xz of documents, look like kernels until File.Read.
func Open(ctx context.Context, sources []string, opts Options) (*Corpus, error) {
	if len(sources) == 0 {
		return nil, errors.New("no kernel source given")
	}
	if opts.MaxSize <= 0 {
		opts.MaxSize = DefaultMaxSize
	}
	w := newWalk(ctx)
	for _, src := range sources {
		if err := w.source(src); err != nil {
			return nil, err
		}
	}
	if err := w.links(); err != nil {
		return nil, err
	}
	for i := range w.files {
		w.files[i].below = w.sources.below(w.files[i].path)
	}
	opts.met = newMet(&opts)
	c := &Corpus{met: opts.met, modules: opts.Modules, Sources: slices.Clone(sources), Ignored: w.ignored}
	keep := func(k kernel.Key) bool {
		kept := opts.selectsPath(k)
		if !kept {
			c.Unselected++
		}
		return kept
	}
	packed, err := w.packed(keep)
	if err != nil {
		return nil, err
	}
	units, skipped := group(w.files, &opts)
	c.Skipped = append(w.skipped, skipped...)
	units = slices.DeleteFunc(units, func(f *File) bool { return !keep(f.Key) })
	for _, f := range append(units, packed...) {
		f.opts = &opts
		if !f.Key.Known() {
			opts.met.later(&f.parts[0])
		}
		c.Files = append(c.Files, f)
	}
	c.Skipped = slices.DeleteFunc(c.Skipped, func(s *Error) bool { return !opts.selectsPath(opts.key(s.Path, w.sources.below(s.Path), "")) })
	slices.SortFunc(c.Files, func(a, b *File) int { return strings.Compare(a.Path, b.Path) })
	slices.SortFunc(c.Skipped, (*Error).Compare)
	if len(c.Files) == 0 {
		return nil, c.nothing(sources)
	}
	return c, nil
}

// nothing explains why the sources hold no kernel.
func (c *Corpus) nothing(sources []string) error {
	where := strings.Join(sources, ", ")
	switch {
	case c.Unselected > 0:
		return fmt.Errorf("%s: none of %d kernels selected%s", where, c.Unselected, c.Selection().nothing())
	case len(c.Skipped) == 1:
		return fmt.Errorf("no kernel found: %w", c.Skipped[0])
	case len(c.Skipped) > 1:
		return fmt.Errorf("%s: no kernel found: %d files skipped, first %w", where, len(c.Skipped), c.Skipped[0])
	}
	return fmt.Errorf("%s: no kernel found", where)
}

// Unmet returns the error for an object that is for no kernel of the corpus.
func (c *Corpus) Unmet(object string) *Error {
	if c.Unselected > 0 {
		return &Error{Path: object, Err: ErrUnselected}
	}
	return &Error{Path: object, Err: ErrUnmet}
}

// Selects reports whether Select and Exclude keep a kernel.
func (o *Options) Selects(k kernel.Key) bool {
	if len(o.Select) > 0 && !slices.ContainsFunc(o.Select, func(s Selector) bool { return s.Match(k) }) {
		return false
	}
	return !slices.ContainsFunc(o.Exclude, func(s Selector) bool { return s.Match(k) })
}

// selectsMet is Selects for a kernel of the corpus.
func (o *Options) selectsMet(k kernel.Key) bool {
	o.met.note(k)
	return o.Selects(k)
}

// selectsPath is Selects for a key that may be incomplete, because it comes from a path alone; if
// so the file has to be read to know.
func (o *Options) selectsPath(k kernel.Key) bool { return !k.Known() || o.selectsMet(k) }
