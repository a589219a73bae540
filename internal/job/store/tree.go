// SPDX-License-Identifier: Apache-2.0

// Package store writes the kernels of a corpus to files: Import writes a compressed tree, which is the fastest to read many times,
// Extract raw BTF, and Pack a .btfc file.
//
// # The compressed tree
//
//	debian/12/x86_64/6.1.0-47-amd64.btf.zst
//	debian/12/x86_64/6.1.0-47-amd64.config.zst
//	debian/12/x86_64/6.1.0-47-amd64.kallsyms.zst
//	modules/debian/12/x86_64/6.1.0-47-amd64.modules.tar.zst    members 6.1.0-47-amd64/<module>.btf
//
// It is BTFHub's layout, with the kernels' configuration and symbols as in corpus.Extras. Package corpus reads it back under the
// same keys, which Import checks. The compression level is the best of klauspost/compress, zstd's 11 or so: seven kernels, 53.1 MB,
// become 4.61 times smaller at 16 MB/s and are read at 1.5 GB/s. The default is 4.18 times, at 125 MB/s; zstd -19 is 5.29 times, at
// 1 MB/s, and is read a third slower. The window is at most 8 MiB, so readers need little memory.
//
// # Files
//
// The bytes of a file depend on the kernel alone. A file appears whole or not at all. A file that already has the right content,
// however it is compressed, is left alone. Of several kernels with one key the first of the corpus is written, in whatever
// order workers process them; those with other BTF are reported.
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
	"github.com/btfgen/btfgen/internal/corpus/walk"
	"github.com/btfgen/btfgen/internal/output"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Result describes what Import or Extract did.
type Result struct {
	Kernels int `json:"kernels"` // in the tree now
	Contents
	Written int   `json:"files_written"`
	Bytes   int64 `json:"bytes_written"`
	Kept    int   `json:"files_kept"` // because they had the right content

	// Skipped is what could not be read, and kernels that have no place in the tree.
	Skipped []*corpus.Error `json:"-"`
}

// Contents counts kernels by what is stored with them.
type Contents struct {
	WithModules int  `json:"with_modules"`
	WithConfig  int  `json:"with_config"`
	WithSymbols int  `json:"with_symbols"`
	Made        Made `json:"made_of_dwarf,omitempty"`
}

// Made counts kernels by the program that made their BTF from DWARF.
type Made map[string]int

// add adds what is stored with a kernel.
func (c *Contents) add(k stored) {
	if k.modules {
		c.WithModules++
	}
	if k.config {
		c.WithConfig++
	}
	if k.symbols {
		c.WithSymbols++
	}
	if k.maker != "" {
		if c.Made == nil {
			c.Made = make(Made)
		}
		c.Made[k.maker]++
	}
}

// stored is what is stored with a kernel.
type stored struct {
	modules, config, symbols bool
	maker                    string // of its BTF, as in corpus.Kernel
}

func storedOf(k *corpus.Kernel) stored {
	return stored{len(k.Modules) > 0, len(k.Config) > 0, len(k.Symbols) > 0, k.Made.By}
}

// tree is a directory that several workers write to.
type tree struct {
	ctx context.Context
	dir string
	out *output.Dir

	inputs map[string]bool // real paths of the files that are read, if the directory existed

	mu      sync.Mutex
	places  map[string]*place
	skipped []*corpus.Error
}

func newTree(ctx context.Context, dir string, c *corpus.Corpus) (*tree, error) {
	t := &tree{ctx: ctx, dir: dir, places: make(map[string]*place), inputs: make(map[string]bool)}
	if _, err := os.Stat(dir); err == nil {
		for _, p := range c.Paths() {
			t.inputs[output.Real(p)] = true
		}
	}
	var err error
	t.out, err = output.OpenDir(dir)
	return t, err
}

// check returns an error if the directory has minimized BTF, or if a kernel's file could not be put in its place. It checks only
// kernels whose path has the key.
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

// place is the place of one kernel, which several may claim.
type place struct {
	mu      sync.Mutex
	claims  []claim
	owner   claim
	name    string // of the owner's first file
	stored  stored // of the owner
	written map[string]int64
	kept    int
}

type claim struct {
	rank walk.Rank
	path string
	sum  [sha256.Size]byte
}

// file is a file to write. Its name has slashes and is relative to the tree.
type file struct {
	name    string
	content content
}

// kernel writes the files of a kernel, unless an earlier one of the corpus has its place. It skips the kernel if a file cannot
// have its name.
func (t *tree) kernel(w *worker, id string, r walk.Rank, k *corpus.Kernel, files []file) error {
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
	p.claims = append(p.claims, c)
	if len(p.claims) > 1 && p.owner.rank.Compare(r) < 0 {
		return nil
	}
	old := p.written
	p.owner, p.name, p.stored = c, files[0].name, storedOf(k)
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
		if _, ours := old[f.name]; n > 0 || ours {
			p.written[f.name] = max(n, old[f.name])
			delete(old, f.name)
		} else {
			p.kept++
		}
	}
	for name := range old { // files of a later kernel that was processed first
		if err := t.out.Remove(name); err != nil {
			return err
		}
	}
	return nil
}

// skip adds a kernel that has no place in the tree.
func (t *tree) skip(path string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.skipped = append(t.skipped, &corpus.Error{Path: path, Err: err})
}

// result returns the result when all workers are done.
func (t *tree) result(skipped []*corpus.Error) *Result {
	r := &Result{Kernels: len(t.places), Skipped: slices.Concat(skipped, t.skipped)}
	for id, p := range t.places {
		r.add(p.stored)
		r.Written += len(p.written)
		r.Kept += p.kept
		for _, n := range p.written {
			r.Bytes += n
		}
		for _, c := range p.claims {
			if c.rank != p.owner.rank {
				r.Skipped = append(r.Skipped, &corpus.Error{Path: c.path, Err: corpus.Second(id, p.owner.path, c.sum == p.owner.sum)})
			}
		}
	}
	slices.SortFunc(r.Skipped, (*corpus.Error).Compare)
	return r
}

// identity returns the canonical key, or name if the key is incomplete.
func identity(k kernel.Key, name string) string {
	if k.Known() {
		return k.Canonical().String()
	}
	return name
}
