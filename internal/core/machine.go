// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/bpfobj/machine"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Machines returns the machines that the object is for, as kernel.CanonicalArch
// spells them, sorted. None means any.
func (o *Object) Machines() []string { return slices.Clone(o.machines) }

// Named returns the same object with another name.
func (o *Object) Named(name string) *Object {
	out := *o
	out.name = name
	return &out
}

// ForMachines returns the same object for these machines, in any spelling that
// kernel.CanonicalArch knows. None means any.
func (o *Object) ForMachines(machines ...string) *Object {
	var canonical []string
	for _, m := range machines {
		canonical = append(canonical, kernel.CanonicalArch(m))
	}
	slices.Sort(canonical)
	return o.withMachines(slices.Compact(canonical))
}

// IsFor reports whether the object is for a kernel: of its byte order, and for
// its machine if that is known. [Run] does not check it.
func (o *Object) IsFor(k *Target) bool {
	return o.order == k.Order() && (len(o.machines) == 0 || o.fits(k.Machine()))
}

func (o *Object) fits(machine string) bool {
	return len(o.machines) == 0 || machine == "" || slices.Contains(o.machines, machine)
}

// OnMachine returns the objects that are used on kernels of a machine, in any
// spelling: those of its byte order that are for it, or for any. For "" it returns all.
func OnMachine(name string, objects ...*Object) []*Object {
	name = kernel.CanonicalArch(name)
	m := machine.Named(name)
	return slices.DeleteFunc(slices.Clone(objects), func(o *Object) bool {
		return !o.fits(name) || m != nil && o.order != m.Order
	})
}

// registerStructs are the types that bpf_tracing.h reads registers from.
var registerStructs = []string{"pt_regs", "user_pt_regs", "user_regs_struct"}

// machinesOf returns the machines that an object is for, derived from the registers
// that its relocations read in any of these structs; nil if it reads none. The
// struct's definition decides, as in a machine's vmlinux.h, or else the names of
// the members. A struct does not count if no member is read: such an object runs
// on all machines. Nor does it count if the object tests whether the struct or a
// member exists, since it then handles kernels without.
func machinesOf(o *Object) (out []string) {
	if o.btf == nil {
		return nil
	}
	read, tested := make(map[btf.TypeID][]string), make(map[btf.TypeID]bool)
	for _, s := range o.specs {
		if s.err != nil || s.kind.IsEnumval() {
			continue
		}
		if t, _ := o.btf.SkipMods(s.root); s.kind.IsType() && s.kind.IsExistence() {
			tested[t.ID] = true
		}
		for _, a := range s.acc {
			if a.name != "" {
				read[a.typeID] = append(read[a.typeID], a.name)
				tested[a.typeID] = tested[a.typeID] || s.kind.IsExistence()
			}
		}
	}
	found, err := o.btf.Find(context.Background(), registerNames, len(registerStructs), nil)
	if err != nil {
		return nil // more of one name than any object has
	}
	for _, id := range slices.Concat(found...) {
		t, _ := o.btf.SkipMods(id) // s390's is a typedef of a nameless one
		if t.Kind().IsComposite() && len(read[t.ID]) > 0 && !tested[t.ID] {
			out = append(out, ofStruct(o.btf, &t, read[t.ID])...)
			delete(read, t.ID)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

var registerNames = btf.NewNames(registerStructs)

// ofStruct returns the machines of a struct, given the members that are read.
func ofStruct(b *btf.BTF, t *btf.Type, names []string) []string {
	var defined, named []string
	for _, m := range machine.All {
		if m.Order != b.Order() || m.Registers == "" {
			continue
		}
		if b.HasMember(t, m.Register) {
			defined = append(defined, m.Arch)
		}
		registers := strings.Fields(m.Registers)
		if !slices.ContainsFunc(names, func(n string) bool { return !slices.Contains(registers, n) }) {
			named = append(named, m.Arch)
		}
	}
	if len(defined) > 0 {
		return defined
	}
	return named
}
