// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"slices"
	"sync"

	"github.com/btfgen/btfgen/internal/corpus/decompress"
	"github.com/btfgen/btfgen/internal/corpus/naming"
	"github.com/btfgen/btfgen/internal/corpus/pahole"
	"github.com/btfgen/btfgen/internal/corpus/selection"
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
	Modules *selection.Modules

	// Select keeps the kernels that any of its selectors matches (all of them if it is empty),
	// Exclude then drops those that any of its selectors matches.
	Select, Exclude []selection.Selector

	// As has namings for the keys of kernels; the first one that fits a path counts.
	As []*naming.Rule

	// Extras requests the configuration and symbols of kernels.
	Extras bool

	// DWARF makes BTF of kernels that have DWARF and no BTF. If it is nil, such kernels are left out.
	DWARF *pahole.Encoder

	// XZ reads large .xz if it is not nil.
	XZ *decompress.XZProgram

	met   *met   // the kernels that selectors match; set by Open
	links *links // the links that are left out; set by Open
}

// key returns the key of the kernel at a path, from the first naming that fits, or else from below. abs is the path of the
// kernel's file if that may be the host's own.
func (o *Options) key(p, below, abs string) kernel.Key {
	for _, n := range o.As {
		if k, ok := n.Key(p); ok {
			return k.Canonical()
		}
	}
	return naming.HostKey(abs, naming.KernelKey(below))
}

// namesRelease reports whether the first naming that fits a path says where the release is.
func (o *Options) namesRelease(p string) bool {
	for _, n := range o.As {
		if _, ok := n.Key(p); ok {
			return n.NamesRelease()
		}
	}
	return false
}

// met records which kernels the selectors match. A nil one does nothing. It is safe for concurrent use.
type met struct {
	opts *Options
	all  []selection.Selector // those of Exclude after those of Select

	mu      sync.Mutex
	matched []bool              // whether all[i] matched a kernel
	keys    map[kernel.Key]bool // keys of all kernels, up to limits.SelectedKeys
	unread  map[*diskFile]bool  // files whose kernels are not known before they are read
}

func newMet(opts *Options) *met {
	if len(opts.Select)+len(opts.Exclude) == 0 {
		return nil
	}
	return &met{
		opts: opts, all: slices.Concat(opts.Select, opts.Exclude), matched: make([]bool, len(opts.Select)+len(opts.Exclude)),
		keys: make(map[kernel.Key]bool), unread: make(map[*diskFile]bool),
	}
}

// note records the key of a kernel.
func (m *met) note(k kernel.Key) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.keys[k] || len(m.keys) >= limits.SelectedKeys && !slices.Contains(m.matched, false) {
		return
	}
	if len(m.keys) < limits.SelectedKeys {
		m.keys[k] = true
	}
	for i, s := range m.all {
		m.matched[i] = m.matched[i] || s.Match(k)
	}
}

// later records that the kernels in a file are known only after reading; read records that this has happened.
func (m *met) later(p *diskFile) {
	if m != nil {
		m.unread[p] = true
	}
}

func (m *met) read(p *diskFile) {
	if m != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.unread, p)
	}
}

// selectsMet is Selects for a kernel of the corpus.
func (o *Options) selectsMet(k kernel.Key) bool {
	o.met.note(k)
	return o.Selects(k)
}

// selectsPath is Selects for a key that may be incomplete, because it comes from a path alone; if
// so the file has to be read to know.
func (o *Options) selectsPath(k kernel.Key) bool { return !k.Known() || o.selectsMet(k) }

// Selects reports whether Select and Exclude keep a kernel.
func (o *Options) Selects(k kernel.Key) bool {
	if len(o.Select) > 0 && !slices.ContainsFunc(o.Select, func(s selection.Selector) bool { return s.Match(k) }) {
		return false
	}
	return !slices.ContainsFunc(o.Exclude, func(s selection.Selector) bool { return s.Match(k) })
}
