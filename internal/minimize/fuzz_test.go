// SPDX-License-Identifier: Apache-2.0

package minimize_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/minimize"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/internal/testing/testlimit"
)

// FuzzKernel minimizes kernels that are not what they claim to be. Each
// gives a BTF that decides the same, which Minimize proves, or an error of its
// own.
func FuzzKernel(f *testing.F) {
	objs := objects(f)
	eachKernel(f, func(name string, data []byte) {
		full, err := testinput.NewKernel(name, data)
		if err != nil {
			f.Fatal(err)
		}
		out, err := minimize.Blob(minimize.New(objs, minimize.Options{}).Minimize(f.Context(), full))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(out)
	})
	f.Fuzz(func(t *testing.T, data []byte) {
		full, err := testinput.NewKernel("fuzz", data)
		if err != nil {
			return
		}
		m := minimize.New(objs, minimize.Options{})
		out, err := m.Minimize(testlimit.Looks(1<<8), full)
		if isDefect(err) {
			t.Fatal(err)
		}
		if err != nil {
			return
		}
		if _, err := btf.New(out.BTF, nil); err != nil {
			t.Fatal(err)
		}
		if len(out.Decisions) == 0 {
			t.Error("no decisions")
		}
	})
}

// TestEndless has a typedef that leads back to itself.
func TestEndless(t *testing.T) {
	b := btf.NewBuilder(binary.LittleEndian)
	b.Type("cpumask_t", btf.KindTypedef, false, 0, 2)
	b.Type("", btf.KindConst, false, 0, 1)
	kernel, err := testinput.NewKernel("k", b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	m := minimize.New(objects(t), minimize.Options{})
	if _, err := m.Minimize(t.Context(), kernel); err == nil || err.Error() != "type 1: more than 32 typedefs, modifiers and arrays in a row" {
		t.Errorf("error %v", err)
	}
}

// TestDeep has types behind too many modifiers for a loader to compute a size.
// Without the modifiers they would have one.
func TestDeep(t *testing.T) {
	asks := map[string]string{
		"typedef": "type_size d",
		"exists":  "type_exists d",
		"member":  "byte_sz struct s.a",
		"offset":  "byte_off struct s.b",
		"array":   "byte_sz struct s.c",
	}
	for name, ask := range asks {
		o, err := core.ParseObject("o", testbtf.Object(t, binary.LittleEndian, "typedef d int\nstruct s 24: a int 0, b int 4, c int[2] 8", ask))
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{0, 1, 28, 29, 30, 31, 32, 33, 34, 60, 300} {
			b := btf.NewBuilder(binary.LittleEndian)
			number := b.Type("int", btf.KindInt, false, 0, 4)
			b.Word(btf.IntSigned<<24 | 32)
			last := number
			for range n {
				last = b.Type("", btf.KindConst, false, 0, uint32(last))
			}
			b.Type("d", btf.KindTypedef, false, 0, uint32(last))
			array := b.Type("", btf.KindArray, false, 0, 0)
			b.Word(uint32(last), uint32(number), 2)
			b.Type("s", btf.KindStruct, false, 3, 24)
			b.Word(b.String("a"), uint32(last), 0, b.String("b"), uint32(last), 32, b.String("c"), uint32(array), 64)
			kernel, err := testinput.NewKernel("k", b.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			_, err = minimize.New([]*core.Object{o}, minimize.Options{}).Minimize(t.Context(), kernel)
			if errors.Is(err, minimize.ErrProof) || n <= 28 && err != nil {
				t.Errorf("%s, %d modifiers: %v", name, n, err)
			}
		}
	}
}

// TestOrder has three types of one name. cilium/ebpf takes the best of them if that is the first, and calls the others
// ambiguous if they are. Only where that makes a difference does the output have them as the kernel does.
func TestOrder(t *testing.T) {
	const best, worse, other = "struct s#1 16: a int 0, b int 4", "struct s#2 8: a int 4", "struct s#3 12: a int 8"
	o, err := core.ParseObject("o", testbtf.Object(t, binary.LittleEndian, "struct s 8: a int 0, b int 4", "byte_off struct s.a\nbyte_off struct s.b"))
	if err != nil {
		t.Fatal(err)
	}
	bySize := []uint32{8, 12, 16}
	for _, c := range []struct {
		types []string
		want  []uint32 // sizes
	}{
		{[]string{worse, other, best}, bySize},
		{[]string{other, worse, best}, bySize},
		{[]string{best, worse, other}, []uint32{16, 8, 12}},
		{[]string{best, other, worse}, []uint32{16, 12, 8}},
		{[]string{best, other, best, worse}, []uint32{16, 12, 8}},
		{[]string{worse, best, other}, []uint32{8, 16, 12}},
	} {
		kernel, err := testinput.NewKernel("k", testbtf.Types(t, binary.LittleEndian, renumber(c.types)))
		if err != nil {
			t.Fatal(err)
		}
		out, err := minimize.New([]*core.Object{o}, minimize.Options{}).Minimize(t.Context(), kernel)
		if err != nil {
			t.Errorf("%q: %v", c.types, err)
			continue
		}
		v, err := btf.New(out.BTF, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []uint32
		for id := range v.Named {
			if u := v.Type(id); string(u.Name()) == "s" {
				got = append(got, u.Size())
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q: sizes %d, want %d", c.types, got, c.want)
		}
	}
}

// renumber makes the keys of types distinct.
func renumber(types []string) string {
	var b strings.Builder
	for i, s := range types {
		fmt.Fprintf(&b, "%s#%d%s\n", s[:len("struct s")], i+1, s[len("struct s#1"):])
	}
	return b.String()
}

// TestContainsItself has two structs of one name with an anonymous member each
// whose anonymous member has its own type.
func TestContainsItself(t *testing.T) {
	b := btf.NewBuilder(binary.LittleEndian)
	b.Type("int", btf.KindInt, false, 0, 4) // 1
	b.Word(btf.IntSigned<<24 | 32)
	for id := uint32(2); id <= 4; id += 2 {
		b.Type("task_struct", btf.KindStruct, false, 2, 64)
		b.Word(b.String("pid"), 1, 0)
		b.Word(0, id+1, 32)
		b.Type("", btf.KindStruct, false, 2, 32)
		b.Word(b.String("tgid"), 1, 0)
		b.Word(0, id+1, 0)
	}
	kernel, err := testinput.NewKernel("k", b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := minimize.New(objects(t), minimize.Options{}).Minimize(t.Context(), kernel); errors.Is(err, minimize.ErrProof) {
		t.Error(err)
	}
}
