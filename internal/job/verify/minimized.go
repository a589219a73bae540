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

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/walk"
	"github.com/btfgen/btfgen/internal/job/bundle"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Minimized is minimized BTF and its kernel.
type Minimized struct {
	Key  kernel.Key // may be incomplete
	Name string     // the name used in messages
	BTF  []byte
}

// Read reads the output of generate (a native archive, a directory or a tar), or any other source of BTF. It skips what cannot
// be read, as a corpus does.
func Read(ctx context.Context, path string) (all []Minimized, skipped []*corpus.Error, err error) {
	_, kernels, err := bundle.ReadKernels(ctx, path)
	if err == nil {
		for _, k := range kernels {
			name := k.Key.String()
			if k.Key.Arch == "" {
				name = k.Key.FileName()
			}
			all = append(all, Minimized{k.Key, name, k.BTF})
		}
		return all, nil, nil
	}
	if !errors.Is(err, bundle.ErrNotBundle) {
		return nil, nil, err
	}
	c, err := corpus.Open(ctx, []string{path}, corpus.Options{})
	if err != nil {
		return nil, nil, err
	}
	skipped, err = walk.Kernels(ctx, walk.Config{Corpus: c}, func() int { return 0 }, func(_ int, _ int, k *corpus.Kernel) error {
		all = append(all, Minimized{k.Key, k.Name, slices.Clone(k.BTF)})
		return nil
	})
	return all, skipped, err
}

// pairs finds the minimized BTF of a kernel. It is safe for concurrent use.
type pairs struct {
	byKey  map[kernel.Key]int
	byFile map[string][]int // indices in all by file name, used for kernels without a complete key
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

// fileName returns the name that generate gives the file of a kernel without a complete key.
func fileName(k kernel.Key, name string) string {
	if k.Release != "" {
		return k.Release
	}
	base := path.Base(filepath.ToSlash(name))
	return strings.TrimSuffix(base[strings.LastIndexByte(base, '!')+1:], ".btf")
}

// find returns the minimized BTF of a kernel, or nil. only is set for the only kernel, which a single BTF without a key matches.
func (p *pairs) find(key kernel.Key, name string, only bool) *Minimized {
	i, ok := p.byKey[key.Canonical()]
	if !key.Known() || !ok {
		if l := p.byFile[fileName(key, name)]; len(l) == 1 && (!key.Known() || !p.all[l[0]].Key.Known()) {
			i = l[0]
		} else if only && len(p.all) == 1 && !(key.Known() && p.all[0].Key.Known()) {
			i = 0
		} else {
			return nil
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used[i] = true
	return &p.all[i]
}

// unused returns the BTFs that find has not returned.
func (p *pairs) unused() (out []Minimized) {
	for i, m := range p.all {
		if !p.used[i] {
			out = append(out, m)
		}
	}
	return out
}
