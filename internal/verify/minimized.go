// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"errors"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/btfgen/btfgen/internal/bundle"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Minimized is a minimized BTF and the kernel that it is for. Whatever holds
// some, of whatever format, is verified as a list of them.
type Minimized struct {
	Key  kernel.Key // incomplete where nothing tells more
	Name string     // for messages
	BTF  []byte
}

// Read reads the minimized BTFs of what generate writes, a native archive, a
// directory or a tar, and of whatever else holds BTF. What cannot be read is
// skipped, as in a corpus.
func Read(ctx context.Context, path string) ([]Minimized, []*corpus.Error, error) {
	if native, err := bundle.IsNative(path); err != nil {
		return nil, nil, err
	} else if native {
		_, kernels, err := bundle.ReadKernels(ctx, path)
		all := make([]Minimized, len(kernels))
		for i, k := range kernels {
			all[i] = Minimized{k.Key, k.Key.String(), k.BTF}
		}
		return all, nil, err
	}
	files, err := bundle.Read(ctx, path)
	switch {
	case err == nil && len(files) > 0:
		return fromFiles(files), nil, nil
	case errors.Is(err, bundle.ErrList):
		return nil, nil, err
	}
	return readCorpus(ctx, path)
}

// fromFiles takes the key of each file from its name.
func fromFiles(files []bundle.File) []Minimized {
	all := make([]Minimized, len(files))
	for i, f := range files {
		all[i] = Minimized{Name: f.Name, BTF: f.Data}
		if k, err := kernel.ParseFileName(f.Name); err == nil {
			all[i].Key = k.Canonical()
			if k = all[i].Key; k.Known() {
				all[i].Name = k.String()
			}
		}
	}
	return all
}

// readCorpus reads them as kernels are read.
func readCorpus(ctx context.Context, source string) ([]Minimized, []*corpus.Error, error) {
	c, err := corpus.Open(ctx, []string{source}, corpus.Options{})
	if err != nil {
		return nil, nil, err
	}
	var all []Minimized
	var scratch corpus.Scratch
	skipped := slices.Clone(c.Skipped)
	for _, f := range c.Files {
		err := f.Read(ctx, &scratch, func(k *corpus.Kernel) error {
			all = append(all, Minimized{k.Key, k.Name, slices.Clone(k.BTF)})
			return nil
		})
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		skipped = append(skipped, corpus.Errors(err)...)
	}
	return all, skipped, nil
}

// pairs finds the minimized BTF of a kernel. It is safe for concurrent use.
type pairs struct {
	byKey  map[kernel.Key]int
	byFile map[string][]int // by file name, for kernels of which no more is known
	all    []Minimized

	mu   sync.Mutex
	used []bool
}

func newPairs(all []Minimized) *pairs {
	p := &pairs{byKey: make(map[kernel.Key]int), byFile: make(map[string][]int), all: all, used: make([]bool, len(all))}
	for i, m := range all {
		if m.Key.Known() {
			p.byKey[m.Key.Canonical()] = i
		}
		f := fileName(m.Key, m.Name)
		p.byFile[f] = append(p.byFile[f], i)
	}
	return p
}

// fileName is the name that generate gives the file of a kernel without a
// complete key.
func fileName(k kernel.Key, name string) string {
	if k.Release != "" {
		return k.Release
	}
	base := path.Base(filepath.ToSlash(name))
	return strings.TrimSuffix(base[strings.LastIndexByte(base, '!')+1:], ".btf")
}

// find returns the minimized BTF for a kernel, nil if there is none. only says
// that the kernel is the only one, so that a lone BTF must be its.
func (p *pairs) find(key kernel.Key, name string, only bool) *Minimized {
	i, ok := p.byKey[key.Canonical()]
	if !key.Known() || !ok {
		i = -1
		if l := p.byFile[fileName(key, name)]; len(l) == 1 && (!key.Known() || !p.all[l[0]].Key.Known()) {
			i = l[0]
		} else if only && len(p.all) == 1 && !(key.Known() && p.all[0].Key.Known()) {
			i = 0
		}
	}
	if i < 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used[i] = true
	return &p.all[i]
}

// unused returns those that no kernel was found for.
func (p *pairs) unused() (out []Minimized) {
	for i, m := range p.all {
		if !p.used[i] {
			out = append(out, m)
		}
	}
	return out
}
