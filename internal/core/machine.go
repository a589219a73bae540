// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/bpfobj/machine"
	"github.com/btfgen/btfgen/internal/btf"
)

// registerStructs are the types that bpf_tracing.h reads registers from.
var registerStructs = []string{"pt_regs", "user_pt_regs", "user_regs_struct"}

// machinesOf returns the machines of an object with these types and specs. It derives them
// from the registers that relocations read in any of these structs, and returns nil if there are
// none. The struct's definition decides, as in a machine's vmlinux.h, or else the names of
// the members. A struct does not count if no member is read: such an object runs
// on all machines. Nor does it count if the object tests whether the struct or a
// member exists, since it then handles kernels without.
func machinesOf(types *btf.BTF, specs []*spec) (out []string) {
	if types == nil {
		return nil
	}
	read, tested := make(map[btf.TypeID][]string), make(map[btf.TypeID]bool)
	for _, s := range specs {
		if s.err != nil || s.kind.IsEnumval() {
			continue
		}
		if t, _ := types.SkipMods(s.root); s.kind.IsType() && s.kind.IsExistence() {
			tested[t.ID] = true
		}
		in := btf.TypeID(0) // the struct that a member belongs to, if it is inside nameless members
		for i, a := range s.acc {
			if t := types.Type(a.typeID); t.NameOff != 0 || i == 0 || a.name == "" || s.acc[i-1].name != "" {
				in = a.typeID
			}
			if a.name != "" {
				read[in] = append(read[in], a.name)
				tested[in] = tested[in] || s.kind.IsExistence()
			}
		}
	}
	found, err := types.Find(context.Background(), registerNames, len(registerStructs), nil)
	if err != nil {
		return nil // more of one name than any object has
	}
	for _, id := range slices.Concat(found...) {
		t, _ := types.SkipMods(id) // s390's is a typedef of a nameless one
		if t.Kind().IsComposite() && len(read[t.ID]) > 0 && !tested[t.ID] {
			out = append(out, ofStruct(types, &t, read[t.ID])...)
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
