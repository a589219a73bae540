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
func (o *Object) IsFor(k *Kernel) bool {
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
func machinesOf(o *Object) []string {
	b := o.BTF()
	if b == nil {
		return nil
	}
	structs := registersOf(b)
	read := make(map[btf.TypeID][]string) // members, by struct
	asked := make(map[btf.TypeID]bool)
	for m := range o.Members() {
		switch {
		case !structs[m.Struct]:
		case m.Exists:
			asked[m.Struct] = true
		case m.Name != "":
			read[m.Struct] = append(read[m.Struct], m.Name)
		}
	}
	var out []string
	for id, names := range read {
		if t := b.Type(id); !asked[id] {
			out = append(out, ofStruct(b, &t, names)...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// registersOf returns the structs with registers of an object.
func registersOf(b *btf.BTF) map[btf.TypeID]bool {
	found, err := b.Find(context.Background(), registerNames, len(registerStructs), nil)
	if err != nil {
		return nil // more of one name than any object has
	}
	structs := make(map[btf.TypeID]bool)
	for _, ids := range found {
		for _, id := range ids {
			if t, ok := b.SkipMods(id); ok && t.Kind().IsComposite() { // s390's is a typedef of a nameless one
				structs[t.ID] = true
			}
		}
	}
	return structs
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
