// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/output"
	"github.com/btfgen/btfgen/internal/sweep"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Result says what Import or Extract did.
type Result struct {
	Kernels     int   // in the tree now
	WithModules int   // kernels that have BTF of modules with them
	WithConfig  int   // kernels whose configuration is with them
	WithSymbols int   // kernels whose symbols are
	Written     int   // files
	Bytes       int64 // of the files written
	Kept        int   // files that were there already
	Made        Made  // kernels whose BTF was made of DWARF

	// Skipped is what the corpus skipped, what could not be read, and kernels that have no place in the tree.
	Skipped []*corpus.Error
}

// Made counts kernels by what made their BTF of DWARF.
type Made map[string]int

// add counts a kernel, if it is one of these.
func (m *Made) add(maker string) {
	if maker == "" {
		return
	}
	if *m == nil {
		*m = make(Made)
	}
	(*m)[maker]++
}

// tree is a directory that several workers write into.
type tree struct {
	ctx context.Context
	dir string
	out *output.Dir

	inputs map[string]bool // real paths of the files that are read, if the directory was there

	mu      sync.Mutex
	places  map[string]*place
	skipped []*corpus.Error
}

func newTree(ctx context.Context, dir string, c *corpus.Corpus) *tree {
	t := &tree{ctx: ctx, dir: dir, out: output.OpenDir(dir), places: make(map[string]*place), inputs: make(map[string]bool)}
	if _, err := os.Stat(dir); err == nil {
		for _, p := range c.Paths() {
			t.inputs[output.Real(p)] = true
		}
	}
	return t
}

// check returns an error if a kernel of the corpus could not be put in its place, as far as paths tell, or would lie
// among minimized ones.
func (t *tree) check(c *corpus.Corpus, name func(k *corpus.Kernel) string) error {
	if l, err := output.ReadList(t.ctx, t.dir); err != nil {
		return err
	} else if l != nil {
		return fmt.Errorf("%s: holds minimized BTF, which its %s lists: name another directory", t.dir, output.ListName)
	}
	for _, f := range c.Files {
		if !f.Key.Known() {
			continue
		}
		name := name(&corpus.Kernel{Key: f.Key, Path: f.Path})
		if output.CheckPath(name) != nil {
			continue // the kernel is skipped
		}
		if err := t.out.Check(name); err != nil {
			return err
		}
	}
	return nil
}

// place is where one kernel goes. Several may want it.
type place struct {
	mu      sync.Mutex
	wanted  []claim
	owner   claim
	name    string           // of the owner's first file
	modules bool             // the owner has some
	config  bool             // the owner's is known
	symbols bool             // the owner's are
	maker   string           // of the owner's BTF
	written map[string]int64 // files and their bytes
	kept    int
}

type claim struct {
	rank sweep.Rank
	path string
	sum  [sha256.Size]byte
}

// file is one to write. content gives it in whole, and again if asked again.
type file struct {
	name    string // within the tree, with slashes
	content content
}

// kernel writes the files of a kernel, unless an earlier one of the corpus has its place. It skips the kernel if a file cannot have its name.
func (t *tree) kernel(w *worker, id string, r sweep.Rank, k *corpus.Kernel, modules bool, files []file) error {
	for _, f := range files {
		if err := output.CheckPath(f.name); err != nil {
			t.skip(k.Path, err)
			return nil
		}
	}
	t.mu.Lock()
	p := t.places[id]
	if p == nil {
		p = new(place)
		t.places[id] = p
	}
	t.mu.Unlock()

	p.mu.Lock()
	defer p.mu.Unlock()
	c := claim{r, k.Path, sha256.Sum256(k.BTF)}
	p.wanted = append(p.wanted, c)
	if len(p.wanted) > 1 && p.owner.rank.Compare(r) < 0 {
		return nil
	}
	old := p.written
	p.owner, p.name, p.modules, p.maker = c, files[0].name, modules, k.Made.By
	p.config, p.symbols = len(k.Config) > 0, len(k.Symbols) > 0
	p.written, p.kept = make(map[string]int64), 0
	for _, f := range files {
		n, err := w.put(t, f.name, f.content)
		if errors.Is(err, ErrInput) {
			t.skip(k.Path, err)
			continue
		}
		if err != nil {
			return err
		}
		if _, mine := old[f.name]; n > 0 || mine {
			p.written[f.name] = max(n, old[f.name])
			delete(old, f.name)
		} else {
			p.kept++
		}
	}
	for name := range old { // of a later kernel that came first
		if err := t.out.Remove(name); err != nil {
			return err
		}
	}
	return nil
}

// skip notes a kernel that has no place in the tree.
func (t *tree) skip(path string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.skipped = append(t.skipped, &corpus.Error{Path: path, Err: err})
}

// result sums up, when all workers are done.
func (t *tree) result(skipped []*corpus.Error) *Result {
	r := &Result{Kernels: len(t.places), Skipped: slices.Concat(skipped, t.skipped)}
	for id, p := range t.places {
		if p.modules {
			r.WithModules++
		}
		if p.config {
			r.WithConfig++
		}
		if p.symbols {
			r.WithSymbols++
		}
		r.Made.add(p.maker)
		r.Written += len(p.written)
		r.Kept += p.kept
		for _, n := range p.written {
			r.Bytes += n
		}
		for _, c := range p.wanted {
			if c.rank != p.owner.rank {
				r.Skipped = append(r.Skipped, &corpus.Error{Path: c.path, Err: corpus.Second(id, p.owner.path, c.sum == p.owner.sum)})
			}
		}
	}
	slices.SortFunc(r.Skipped, (*corpus.Error).Compare)
	return r
}

// identity is the same for keys that name the same kernel. name stands in for a key that is not
// known.
func identity(k kernel.Key, name string) string {
	if k.Known() {
		return k.Canonical().String()
	}
	return name
}
