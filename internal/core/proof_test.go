// SPDX-License-Identifier: Apache-2.0

package core

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/testbtf"
)

// proofCase is a kernel and the output of a wrong minimizer, in the notation of
// testbtf.
type proofCase struct {
	name        string
	local       string
	asks        string
	full, small string
	want        Difference
}

// No loader notices any of these.
var proofAccepts = []proofCase{
	{
		name:  "nothing changed",
		local: "struct foo 8: a int 0", asks: "byte_off struct foo.a\n type_matches struct foo\n target_type_id struct foo",
		full:  "struct foo 8: a int 0",
		small: "struct foo 8: a int 0",
	},
	{
		name:  "members that no relocation needs are missing",
		local: "struct foo 8: a int 0", asks: "byte_off struct foo.a\n type_size struct foo",
		full:  "struct foo 8: a int 0, b int 4, # #in 0\n struct #in 4: c int 0",
		small: "struct foo 8: a int 0",
	},
	{
		name:  "candidate that no loader matches is missing",
		local: "struct foo 8: a int 0", asks: "byte_off struct foo.a",
		full:  "struct foo 8: b int 0\n struct foo#2 8: a int 4\n typedef foo#3 int",
		small: "struct foo 8: a int 4",
	},
	{
		name:  "no candidate instead of one that does not match",
		local: "struct foo 8: a int 0", asks: "byte_off struct foo.a\n field_exists struct foo.a",
		full:  "struct foo 8: b int 0",
		small: "",
	},
	{
		name:  "equal candidates merged",
		local: "struct foo 8: a int 0", asks: "byte_off struct foo.a",
		full:  "struct foo 8: a int 0\n struct foo#2 8: a int 4\n struct foo#3 8: a int 0\n struct foo#4 8: a int 4, b int 0",
		small: "struct foo 8: a int 0\n struct foo#2 8: a int 4",
	},
	{
		name:  "equal candidates stay two where a relocation uses their type IDs",
		local: "struct foo 8: a int 0", asks: "target_type_id struct foo",
		full:  "struct foo 8: a int 0\n struct foo#2 8: b int 0",
		small: "struct foo 8:\n struct foo#2 8:",
	},
	{
		name:  "other type IDs",
		local: "struct foo 8: a int 0", asks: "target_type_id struct foo\n byte_off struct foo.a",
		full:  "struct foo 8: a int 0",
		small: "union other 4: x int 0\n fwd more union\n struct foo 8: a int 0",
	},
	{
		name:  "other order, libbpf and cilium/ebpf fail with either",
		local: "struct foo 8: a int 0", asks: "byte_off struct foo.a",
		full:  "struct foo 8: a int 0\n struct foo#2 8: a int 4",
		small: "struct foo 8: a int 4\n struct foo#2 8: a int 0",
	},
	{
		name:  "other order, one candidate is ruled out in either",
		local: "struct foo 8: a int 0, b int 4", asks: "byte_off struct foo.a\n byte_off struct foo.b",
		full:  "struct foo 12: a int 4, b int 8\n struct foo#2 12: b int 4",
		small: "struct foo 12: b int 4\n struct foo#2 12: a int 4, b int 8",
	},
	{
		name:  "other order, and no program reads both members",
		local: "struct foo 8: a int 0, b int 4", asks: "program one\n field_exists struct foo.a\n program two\n field_exists struct foo.b",
		full:  "struct foo 8: a int 0, b int 4\n struct foo#2 8: b int 0, a int 4",
		small: "struct foo 8: b int 0, a int 4\n struct foo#2 8: a int 0, b int 4",
	},
	{
		name:  "other names of integers, sizes and targets of pointers, where relocations use only offsets",
		local: "struct foo 16: a u64 0, b *bar 8\n fwd bar struct", asks: "byte_off struct foo.a\n byte_off struct foo.b",
		full:  "struct foo 24: a size_t 0, b *bar 16\n int size_t 8\n struct bar 4: x int 0",
		small: "struct foo 20: a u64 0, b *void 16",
	},
	{
		name:  "typedefs on the way",
		local: "struct foo 8: a u64 0", asks: "byte_off struct foo.a",
		full:  "struct foo 8: a size_t 0\n typedef size_t u64",
		small: "struct foo 8: a u64 0",
	},
	{
		name:  "other value of an enumerator whose existence is tested",
		local: "enum foo 4: X 1", asks: "enumval_exists enum foo::X",
		full:  "enum foo 4: X 1, Y 2",
		small: "enum foo 4: X 5",
	},
}

// set returns the questions of an object.
func (c *proofCase) set(t *testing.T) *Set {
	t.Helper()
	var operands []uint64 // the local values, from the first object
	for {
		o, err := ParseObject("o", testbtf.Object(t, binary.LittleEndian, c.local, c.asks, operands...))
		if err != nil {
			t.Fatal(err)
		}
		if operands != nil {
			return NewSet(o)
		}
		for _, r := range o.records {
			operands = append(operands, o.specs[r.spec].local().val)
		}
	}
}

// filled returns the outcomes of a set on a kernel.
func filled(t *testing.T, s *Set, types string) *Table {
	t.Helper()
	var k Target
	if err := k.Load(t.Context(), "k", testbtf.Types(t, binary.LittleEndian, types)); err != nil {
		t.Fatal(err)
	}
	tb := new(Table)
	if err := new(Filler).Fill(t.Context(), tb, s, &k, nil); err != nil {
		t.Fatal(err)
	}
	return tb
}

func difference(t *testing.T, full, small *Table) *Difference {
	t.Helper()
	d, err := Compare(t.Context(), full, small)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestProofRefuses(t *testing.T) {
	for _, c := range proofRefuses {
		t.Run(c.name, func(t *testing.T) {
			s := c.set(t)
			full := filled(t, s, c.full)
			if d := difference(t, full, filled(t, s, c.full)); d != nil {
				t.Fatalf("the kernel is not the same as itself: %v", d)
			}
			c.want.Object = "o"
			if c.want.Order && strings.HasPrefix(c.want.Full, "cilium/ebpf: ") { // the name is that of the relocation's type
				root, _, _ := strings.Cut(strings.Fields(c.want.Relocation)[2], ".")
				c.want.Name = root
			}
			switch d := difference(t, full, filled(t, s, c.small)); {
			case d == nil:
				t.Error("no difference")
			case *d != c.want:
				t.Errorf("\nhave %#v\nwant %#v", *d, c.want)
			}
		})
	}
}

func TestProofAccepts(t *testing.T) {
	for _, c := range proofAccepts {
		t.Run(c.name, func(t *testing.T) {
			s := c.set(t)
			if d := difference(t, filled(t, s, c.full), filled(t, s, c.small)); d != nil {
				t.Errorf("difference: %#v", d)
			}
		})
	}
}

// TestProofOrder compares a kernel with itself in the other byte order.
func TestProofOrder(t *testing.T) {
	c := proofCase{local: "struct foo 8: a int 0", asks: "byte_off struct foo.a"}
	s := c.set(t)
	full, small := filled(t, s, c.local), new(Table)
	var k Target
	if err := k.Load(t.Context(), "k", testbtf.Types(t, binary.BigEndian, c.local)); err != nil {
		t.Fatal(err)
	}
	if err := new(Filler).Fill(t.Context(), small, s, &k, nil); err != nil {
		t.Fatal(err)
	}
	if d := difference(t, full, small); d == nil || d.Full != "LittleEndian" || d.Minimized != "BigEndian" {
		t.Errorf("difference %+v", d)
	}
}
