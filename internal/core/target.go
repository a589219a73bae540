// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"sync"

	"github.com/btfgen/btfgen/internal/bpfobj/machine"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/pkg/kernel"
	"github.com/btfgen/btfgen/pkg/relo"
)

// Target is the target side: the types of vmlinux and of kernel modules. The
// zero value is ready for [Target.Load]. Between loads it is immutable and safe
// for use by many goroutines.
type Target struct {
	name  string
	views []*moduleTypes // vmlinux first, then the modules in the order given
	spare []*moduleTypes

	part    bool
	machine func() string
}

// moduleTypes is the BTF of vmlinux (module "") or of one module.
type moduleTypes struct {
	btf.BTF
	module string
}

// Load parses the raw BTF of a kernel and its modules, of either byte order,
// reusing the memory of an earlier Load. The data must not change while k is in
// use. The name is used in messages and logs. Errors name the kernel and the
// module; after one, k must be loaded again before it is used.
func (k *Target) Load(ctx context.Context, name string, vmlinux []byte, modules ...relo.Module) error {
	k.name, k.part = name, false
	k.SetMachine("")
	k.spare = append(k.spare, k.views...)
	k.views = k.views[:0]
	if err := k.load(ctx, "", vmlinux, nil); err != nil {
		return &LoadError{k.name, err}
	}
	for _, m := range modules {
		if err := k.Add(ctx, m); err != nil {
			return &LoadError{k.name, fmt.Errorf("module %s: %w", m.Name, err)}
		}
	}
	return nil
}

// Add adds a module to those of the last Load. The error is about its BTF; k then
// stays as it was.
func (k *Target) Add(ctx context.Context, m relo.Module) error {
	return k.load(ctx, m.Name, m.BTF, &k.views[0].BTF)
}

// SetPart declares that the loaded BTF has only the types that relocations can reach, and the last type of vmlinux in place of all others.
// It must be called before k is shared with other goroutines, and lasts until the next Load.
func (k *Target) SetPart() {
	k.part = true
	k.views[0].SetTrap()
}

// Part reports whether SetPart was called.
func (k *Target) Part() bool { return k.part }

// Trapped reports whether anything has looked at a type that is not in the part. Then results may differ from those of the
// whole kernel.
func (k *Target) Trapped() bool { return k.part && k.views[0].Trapped() }

// Machine returns the machine of the kernel, as kernel.CanonicalArch spells it:
// the one that SetMachine was given, or else the one whose struct pt_regs the
// kernel has. It returns "" if neither is known.
func (k *Target) Machine() string { return k.machine() }

// SetMachine sets the machine of the kernel, in any spelling, until the next
// Load. "" leaves it to [Target.Machine]. It must be called before k is shared
// with other goroutines.
func (k *Target) SetMachine(arch string) {
	arch = kernel.CanonicalArch(arch)
	k.machine = sync.OnceValue(func() string {
		if arch == "" && len(k.views) > 0 {
			return machine.OfKernel(context.Background(), &k.views[0].BTF)
		}
		return arch
	})
}

// LoadError is the error of Load.
type LoadError struct {
	Kernel string // the name given to Load
	Err    error
}

func (e *LoadError) Error() string { return e.Kernel + ": " + e.Err.Error() }
func (e *LoadError) Unwrap() error { return e.Err }

func (k *Target) load(ctx context.Context, module string, data []byte, base *btf.BTF) error {
	v := new(moduleTypes)
	if n := len(k.spare); n > 0 {
		v, k.spare = k.spare[n-1], k.spare[:n-1]
	}
	v.module = module
	if err := v.Load(ctx, data, base); err != nil {
		return err
	}
	if err := v.CheckNames(ctx); err != nil {
		return err
	}
	k.views = append(k.views, v)
	return nil
}

// Name returns the name that was given to Load.
func (k *Target) Name() string { return k.name }

// Order returns the byte order of the kernel.
func (k *Target) Order() binary.ByteOrder { return k.views[0].Order() }

// PointerSize returns the bytes of a pointer in the kernel.
func (k *Target) PointerSize() int { return int(k.views[0].PointerSize()) }

// Views returns the types of vmlinux, whose module name is empty, and then
// those of each module.
func (k *Target) Views() iter.Seq2[string, *btf.BTF] {
	return func(yield func(string, *btf.BTF) bool) {
		for _, v := range k.views {
			if !yield(v.module, &v.BTF) {
				return
			}
		}
	}
}

// CheckRecursion returns an error if cilium/ebpf cannot read the kernel, see [btf.CheckRecursion].
func (k *Target) CheckRecursion(ctx context.Context) error {
	views := make([]*btf.BTF, len(k.views))
	for i, v := range k.views {
		views[i] = &v.BTF
	}
	return btf.CheckRecursion(ctx, views...)
}

// candidate is a type of any kind with the essential name of the local type.
type candidate struct {
	view *moduleTypes
	id   btf.TypeID
	by   btf.Loaders // their names are equal without flavors
}

// libbpf reports whether libbpf considers the candidate for a local type of this kind.
func (c candidate) libbpf(kind btf.Kind) bool {
	return c.by&btf.Libbpf != 0 && kind.Compat(c.kind())
}

// aya reports whether aya considers the candidate for a local type of this kind.
func (c candidate) aya(kind btf.Kind) bool { return c.by&btf.Aya != 0 && c.kind() == kind }

func (c candidate) kind() btf.Kind {
	return c.view.Type(c.id).Kind()
}

// find returns the candidates for each name of a set, vmlinux's before the
// modules'. out and ids are reused.
func (k *Target) find(ctx context.Context, s *Set, out [][]candidate, ids [][]btf.TypeID) ([][]candidate, [][]btf.TypeID, error) {
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
				out[i] = append(out[i], candidate{v, id, btf.SameEssential(s.names[i], v.Type(id).Name())})
			}
			// The limit is for vmlinux and all modules together.
			if len(out[i]) > limits.Candidates {
				return out, ids, &limits.Exceeded{Max: limits.Candidates, What: "candidates of one name"}
			}
		}
	}
	return out, ids, nil
}

// visible returns how many candidates a loader considers if it takes candidates of modules only when vmlinux has
// none, as libbpf does (bpf_core_find_cands). aya reads no modules, but may get a BTF with the types of both.
func visible(all []candidate, takes func(candidate) bool) int {
	none := true
	for i, c := range all {
		if c.view.module != "" {
			if none {
				return len(all)
			}
			return i
		}
		none = none && !takes(c)
	}
	return len(all)
}

// NoTypes returns a little-endian kernel without types.
var NoTypes = sync.OnceValue(func() *Target {
	k := new(Target)
	_ = k.Load(context.Background(), "", btf.NewBuilder(binary.LittleEndian).Bytes()) // an empty BTF is valid
	return k
})

// ForMachine returns the same kernel for a machine, in any spelling. It shares
// the types of k, which must not be loaded again while either is in use.
func (k *Target) ForMachine(arch string) *Target {
	c := &Target{name: k.name, views: k.views, part: k.part}
	c.SetMachine(arch)
	return c
}
