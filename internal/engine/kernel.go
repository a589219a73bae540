// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"

	"github.com/btfgen/btfgen/internal/btfenc"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/rawbtf"
)

// Kernel is the target side: the types of vmlinux and of kernel modules. The
// zero value is ready for [Kernel.Load]. Between loads it is immutable and safe
// for use by many goroutines.
type Kernel struct {
	name  string
	views []*view // vmlinux first, then the modules in the order given
	spare []*view

	// Part says that this is what relocations look at, and no more. Load resets it.
	Part bool
}

// view is the BTF of vmlinux (module "") or of one module.
type view struct {
	rawbtf.BTF
	module string
}

// Load makes k the kernel with this raw BTF, without modules, reusing the memory
// of an earlier Load. The data must not change while k is in use. The name is
// used in messages and logs. Errors name the kernel, that of the context, too.
func (k *Kernel) Load(ctx context.Context, name string, vmlinux []byte) error {
	k.name, k.Part = name, false
	k.spare = append(k.spare, k.views...)
	k.views = k.views[:0]
	return k.load(ctx, "", vmlinux, nil)
}

// AddModule adds the split BTF of a module on top of vmlinux. Errors name
// kernel and module.
func (k *Kernel) AddModule(ctx context.Context, name string, btf []byte) error {
	return k.load(ctx, name, btf, &k.views[0].BTF)
}

func (k *Kernel) load(ctx context.Context, module string, data []byte, base *rawbtf.BTF) error {
	v := new(view)
	if n := len(k.spare); n > 0 {
		v, k.spare = k.spare[n-1], k.spare[:n-1]
	}
	v.module = module
	switch err := v.Load(ctx, data, base); {
	case err != nil && base != nil:
		return fmt.Errorf("%s: %w", k.name, fmt.Errorf("module %s: %w", module, err))
	case err != nil:
		return fmt.Errorf("%s: %w", k.name, err)
	}
	k.views = append(k.views, v)
	return nil
}

// Name returns the name that was given to Load.
func (k *Kernel) Name() string { return k.name }

// Order returns the byte order of the kernel.
func (k *Kernel) Order() binary.ByteOrder { return k.views[0].Order() }

// PointerSize returns the bytes of a pointer in the kernel.
func (k *Kernel) PointerSize() int { return int(k.views[0].PointerSize()) }

// Views returns the types of vmlinux, whose module name is empty, and then
// those of each module.
func (k *Kernel) Views() iter.Seq2[string, *rawbtf.BTF] {
	return func(yield func(string, *rawbtf.BTF) bool) {
		for _, v := range k.views {
			if !yield(v.module, &v.BTF) {
				return
			}
		}
	}
}

// CheckRecursion returns an error if cilium/ebpf must not be given the kernel, see [rawbtf.CheckRecursion].
func (k *Kernel) CheckRecursion(ctx context.Context) error {
	views := make([]*rawbtf.BTF, len(k.views))
	for i, v := range k.views {
		views[i] = &v.BTF
	}
	return rawbtf.CheckRecursion(ctx, views...)
}

// candidate is a type with the name that is looked for, of any kind. Which of
// its flavors count differs between loaders.
type candidate struct {
	view *view
	id   btfenc.TypeID
	by   rawbtf.Loaders // that take its name for the one looked for
}

// libbpf reports whether libbpf looks at the candidate for a local type of this kind.
func (c candidate) libbpf(kind btfenc.Kind) bool {
	return c.by&rawbtf.Libbpf != 0 && kind.Compat(c.kind())
}

func (c candidate) kind() btfenc.Kind {
	t := c.view.Type(c.id)
	return t.Kind()
}

// find returns, for each of the names of a set, the types that differ from it in
// flavors at most, vmlinux before the modules. out and ids are reused.
func (k *Kernel) find(ctx context.Context, s *Set, out [][]candidate, ids [][]btfenc.TypeID) ([][]candidate, [][]btfenc.TypeID, error) {
	n := len(s.names)
	if cap(out) < n {
		out = make([][]candidate, n)
	}
	out = out[:n]
	for i := range out {
		out[i] = out[i][:0]
	}
	for _, v := range k.views {
		var err error
		if ids, err = v.Find(ctx, s.index, n, ids); err != nil {
			return out, ids, err
		}
		for i, l := range ids {
			for _, id := range l {
				t := v.Type(id)
				out[i] = append(out[i], candidate{v, id, rawbtf.SameEssential(s.names[i], t.Name())})
			}
			if len(out[i]) > limits.Candidates { // of all modules together
				return out, ids, &limits.Exceeded{Max: limits.Candidates, What: "candidates of one name"}
			}
		}
	}
	return out, ids, nil
}

// visible returns how many of the types with a name loaders look at for a local
// type of this kind: those of modules count only where vmlinux has none of a
// compatible kind (bpf_core_find_cands). Of what remains libbpf takes the types
// of a compatible kind, and so do its rules here; others are less strict.
func visible(all []candidate, kind btfenc.Kind) int {
	compat := false
	for i, c := range all {
		if c.view.module != "" && compat {
			return i
		}
		compat = compat || c.view.module == "" && c.libbpf(kind)
	}
	return len(all)
}
