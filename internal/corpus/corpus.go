// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/corpus/find"
	"github.com/btfgen/btfgen/internal/corpus/selection"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Corpus lists where the kernels are. It is immutable and safe for concurrent use.
type Corpus struct {
	Sources []string // sources given to Open

	// Files are the units of work, sorted by path. They are independent of each other.
	Files []*File

	// Skipped lists, sorted by path, what looks like a kernel but is not, except where the path has a key that the selectors exclude.
	Skipped []*Error

	Ignored    int // files that have nothing to do with BTF: markers, checksums, scripts
	Unselected int // files whose key, known from their path, the selectors leave out

	seconds []*File             // those that Distinct took out of Files
	left    map[kernel.Key]bool // kernels that WithoutBTF left out
	links   *links

	met     *met
	modules *selection.Modules // Options.Modules
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
	found, err := find.Files(ctx, sources)
	if err != nil {
		return nil, err
	}
	opts.met, opts.links = newMet(&opts), new(links)
	chooseLinks(opts.links, found, &opts)
	c := &Corpus{met: opts.met, links: opts.links, modules: opts.Modules, Sources: slices.Clone(sources), Ignored: found.Ignored}
	keep := func(k kernel.Key) bool {
		kept := opts.selectsPath(k)
		if !kept {
			c.Unselected++
		}
		return kept
	}
	inFiles, err := btfcFiles(found, keep)
	if err != nil {
		return nil, err
	}
	files, skipped := group(found.Files, &opts)
	c.Skipped = append(found.Skipped, skipped...)
	files = slices.DeleteFunc(files, func(f *File) bool { return !keep(f.Key) })
	for _, f := range append(files, inFiles...) {
		f.opts = &opts
		if !f.Key.Known() {
			opts.met.later(&f.files[0])
		}
		c.Files = append(c.Files, f)
	}
	c.Skipped = slices.DeleteFunc(c.Skipped, func(s *Error) bool {
		return !opts.selectsPath(opts.key(s.Path, found.Below(s.Path), ""))
	})
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

// ModulesNotFound is Modules.NotFound.
func (c *Corpus) ModulesNotFound() []selection.NotFound { return c.modules.NotFound() }

// Unread notes that a run does not read all kernels, so that modules may be in others.
func (c *Corpus) Unread() { c.modules.Unread() }

// Modules returns the chosen modules, see Modules.Names.
func (c *Corpus) Modules() []string { return c.modules.Names() }

// Selects says whether the selectors, and WithoutBTF, keep a kernel, which need not be of the corpus.
func (c *Corpus) Selects(k kernel.Key) bool {
	return (c.met == nil || c.met.opts.Selects(k)) && !c.left[k.Canonical()]
}

// Selection returns the result of the selectors so far. The keys of most kernels come from their paths; those of the others are known
// when their files were read.
func (c *Corpus) Selection() Selection { return c.met.selection() }

// Links returns the links that are left out because they are second names of kernels, sorted by path. Those in a tar file are known once
// it was read.
func (c *Corpus) Links() []*Error {
	c.links.mu.Lock()
	defer c.links.mu.Unlock()
	slices.SortFunc(c.links.all, (*Error).Compare)
	return slices.Clone(c.links.all)
}

// Query makes ReadPart read the types that q selects. It must be called before c is used otherwise.
func (c *Corpus) Query(q *btfc.Query) {
	of := make(map[*btfc.File]*btfc.File)
	for _, f := range c.Files {
		if f.btfc == nil {
			continue
		}
		if of[f.btfc.file] == nil {
			of[f.btfc.file] = f.btfc.file.For(q)
		}
		f.btfc.file = of[f.btfc.file]
	}
}

// Packages returns the packages noted in the corpora in one file.
func (c *Corpus) Packages() (all []btfc.Package) {
	seen := make(map[*btfc.File]bool)
	for _, f := range c.Files {
		if f.btfc != nil && !seen[f.btfc.file] {
			seen[f.btfc.file] = true
			all = append(all, f.btfc.file.Packages()...)
		}
	}
	return all
}
