// SPDX-License-Identifier: Apache-2.0

package bpfobj

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/limits"
)

// TestTypedKsyms checks that each kfunc and typed variable of .ksyms is returned once, and no untyped one.
func TestTypedKsyms(t *testing.T) {
	b := btf.NewBuilder(binary.LittleEndian)
	number := b.Type("int", btf.KindInt, false, 0, 4)
	b.Word(32)
	proto := b.Type("", btf.KindFuncProto, false, 0, 0)
	typed := b.Type("runqueues", btf.KindVar, false, 0, uint32(number))
	b.Word(2)
	untyped := b.Type("bpf_link_fops", btf.KindVar, false, 0, 0)
	b.Word(2)
	vars := []btf.TypeID{typed, untyped, typed}
	for i := range 2 * limits.Externals {
		vars = append(vars, b.Type(fmt.Sprint("kfunc", i), btf.KindFunc, false, 2, uint32(proto)))
	}
	for _, section := range []string{".data", ".ksyms"} {
		b.Type(section, btf.KindDatasec, false, len(vars), 0)
		for _, v := range vars {
			b.Word(uint32(v), 0, 0)
		}
	}
	types, err := btf.New(b.Bytes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := TypedKsyms(types)
	if want := []string{"runqueues", "kfunc0", "kfunc1"}; !slices.Equal(got[:3], want) || len(got) != limits.Externals {
		t.Errorf("%d names, %q…; want %d, %q…", len(got), got[:3], limits.Externals, want)
	}
}
