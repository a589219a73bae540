// SPDX-License-Identifier: Apache-2.0

package bpfobj

import (
	"debug/elf"
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/testelf"
)

// TestLabels checks that labels of compilers are not programs: LBB0_1 is clang's, and GCC's BTF.ext refers to LI1.
// Functions of clang before version 8 have no type either, but are global.
func TestLabels(t *testing.T) {
	for _, c := range []struct {
		compiler, label string
		at              uint64
		bind            elf.SymBind
		want            []string
	}{
		{"clang", "LBB0_1", 8, elf.STB_LOCAL, []string{"f"}},
		{"gcc", "LI1", 8, elf.STB_LOCAL, []string{"f"}},
		{"gcc, at the beginning", "LI0", 0, elf.STB_LOCAL, []string{"f"}},
		{"old clang", "g", 8, elf.STB_GLOBAL, []string{"f", "g"}},
	} {
		data := object([]testelf.Symbol{function("f", 0, 0), {Name: c.label, At: c.at}},
			[]testelf.Section{{Name: "kprobe/f", Flags: elf.SHF_EXECINSTR, Data: slices.Concat(exitInsn, exitInsn)}})
		data[mustELF(data).Section(".symtab").Offset+2*24+4] = elf.ST_INFO(c.bind, elf.STT_NOTYPE)
		o, err := parse(t.Context(), data)
		if err != nil {
			t.Fatal(c.compiler, err)
		}
		var got []string
		for _, f := range o.Funcs {
			got = append(got, f.Name)
		}
		if !slices.Equal(got, c.want) || len(o.Programs) != len(c.want) || len(c.want) == 1 && len(o.Funcs[0].Insns) != 2 {
			t.Errorf("%s: %d programs, functions %q, want %q", c.compiler, len(o.Programs), got, c.want)
		}
	}
}
