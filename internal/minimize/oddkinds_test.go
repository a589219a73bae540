// SPDX-License-Identifier: Apache-2.0

package minimize_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/minimize"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/internal/testing/testinput"
)

// TestOddReferences minimizes kernels whose members, pointers, typedefs, arrays and parameters refer to types of any
// kind, such as functions and tags. No compiler makes them. Each gives a BTF with the kernel's decisions, or an error of its own.
func TestOddReferences(t *testing.T) {
	asks := "byte_off struct foo.a\nbyte_off struct foo.p\nbyte_off struct foo.t\nbyte_off struct foo.e[1]\nbyte_off struct foo.f\ntype_matches struct foo\ntype_exists struct foo\n" +
		"byte_off struct pointer.p\ntype_matches struct pointer" // what the pointer leads to has to be there, or it would be void
	var objects []*core.Object
	for _, local := range []string{"int", "*int", "*void", "bar", "*bar", "col", "big", "fun", "*fun"} {
		types := strings.ReplaceAll("struct bar 4: a int 0\nenum col 4: red 0\nenum64 big 8: blue 0\nproto fun int: int\nstruct foo 64: a X 0, p *X 8, t X 16, e X[4] 24, f *fun 56\nstruct pointer 8: p *void 0", "X", local)
		o, err := core.ParseObject(local, testbtf.Object(t, binary.LittleEndian, types, asks))
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	for kind := btf.KindVoid + 1; kind <= btf.KindEnum64; kind++ {
		for _, name := range []string{"", "odd"} {
			target, err := testinput.NewKernel(kind.String(), oddKernel(kind, name))
			if err != nil {
				t.Logf("%s %q: %v", kind, name, err)
				continue
			}
			refused := false
			for _, set := range [][]*core.Object{objects, objects[:1], objects[3:4]} {
				m := minimize.New(set, minimize.Options{})
				_, err := m.Minimize(t.Context(), target)
				if errors.Is(err, minimize.ErrProof) {
					t.Errorf("%s %q: %v", kind, name, err)
				}
				refused = refused || err != nil
			}
			// The integer has no bits, so that it is a bitfield for cilium/ebpf where no typedef is in front of it.
			if odd := kind == btf.KindDeclTag || kind == btf.KindDatasec || kind == btf.KindInt; refused != odd {
				t.Errorf("%s %q: refused is %v", kind, name, refused)
			}
		}
	}
}

// oddKernel has a struct foo that refers to a type of this kind in every way.
func oddKernel(kind btf.Kind, name string) []byte {
	b := btf.NewBuilder(binary.LittleEndian)
	number := b.Type("int", btf.KindInt, false, 0, 4)
	b.Word(btf.IntSigned<<24 | 32)
	vlen, third := 1, uint32(number)
	shape := kind.Shape()
	if len(shape.Elem) == 0 {
		vlen = 0
	}
	if shape.Third == btf.Size {
		third = 4
	}
	odd := b.Type(name, kind, false, vlen, third)
	for _, w := range append(append([]btf.Word(nil), shape.Extra...), shape.Elem...) {
		switch w {
		case btf.Name:
			b.Word(b.String("a"))
		case btf.Ref:
			b.Word(uint32(number))
		default:
			b.Word(0)
		}
	}
	pointer := b.Type("", btf.KindPtr, false, 0, uint32(odd))
	typedef := b.Type("t", btf.KindTypedef, false, 0, uint32(odd))
	array := b.Type("", btf.KindArray, false, 0, 0)
	b.Word(uint32(odd), uint32(number), 4)
	proto := b.Type("", btf.KindFuncProto, false, 1, uint32(odd))
	b.Word(b.String("x"), uint32(odd))
	function := b.Type("", btf.KindPtr, false, 0, uint32(proto))
	members := []btf.TypeID{odd, pointer, typedef, array, function}
	b.Type("foo", btf.KindStruct, false, len(members), 64)
	for i, m := range members {
		b.Word(b.String(fmt.Sprint("aptef"[i:i+1])), uint32(m), uint32(64*i))
	}
	b.Type("pointer", btf.KindStruct, false, 1, 8)
	b.Word(b.String("p"), uint32(pointer), 0)
	return b.Bytes()
}
