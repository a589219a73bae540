// SPDX-License-Identifier: Apache-2.0

package canon_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/btfgen/btfgen/internal/btfenc"
	"github.com/btfgen/btfgen/internal/canon"
	"github.com/btfgen/btfgen/internal/rawbtf"
)

func merge(tb testing.TB, types []*canon.Type) []*canon.Type {
	tb.Helper()
	merged, err := canon.Merge(context.Background(), types)
	if err != nil {
		tb.Fatal(err)
	}
	return merged
}

// random returns n types that refer to each other at random, cycles and equal
// ones included.
func random(rnd *rand.Rand, n int) []*canon.Type {
	types := make([]*canon.Type, n)
	ref := func() int { return rnd.IntN(n+1) - 1 } // canon.Void included
	for i := range types {
		switch rnd.IntN(6) {
		case 0:
			types[i] = &canon.Type{Kind: btfenc.KindInt, Name: "int", Size: 4, Fields: []canon.Field{{Lo: 32}}}
		case 1:
			types[i] = &canon.Type{Kind: btfenc.KindPtr, Refs: []int{ref()}}
		case 2:
			types[i] = &canon.Type{Kind: btfenc.KindArray, Fields: []canon.Field{{Lo: uint32(rnd.IntN(2))}}, Refs: []int{ref(), ref()}}
		case 3:
			types[i] = &canon.Type{Kind: btfenc.KindEnum, Name: "e", Size: 4, Fields: []canon.Field{{Name: "A", Lo: uint32(rnd.IntN(2))}}}
		case 4:
			t := &canon.Type{Kind: btfenc.KindStruct, Size: 8, Name: []string{"", "s", "t"}[rnd.IntN(3)], Copies: rnd.IntN(10) / 9, Order: rnd.IntN(3)}
			for f := range rnd.IntN(3) {
				t.Fields = append(t.Fields, canon.Field{Name: fmt.Sprint("f", f), Lo: uint32(f) * 32})
				t.Refs = append(t.Refs, ref())
			}
			types[i] = t
		case 5:
			kind := []btfenc.Kind{btfenc.KindFunc, btfenc.KindVar}[rnd.IntN(2)]
			types[i] = &canon.Type{Kind: kind, Name: "s", Fields: []canon.Field{{Lo: uint32(rnd.IntN(3))}}, Refs: []int{ref()}}
		}
	}
	return types
}

// permute returns the same types in another order.
func permute(rnd *rand.Rand, types []*canon.Type) []*canon.Type {
	to := rnd.Perm(len(types))
	out := make([]*canon.Type, len(types))
	for i, t := range types {
		c := *t
		c.Refs = nil
		for _, r := range t.Refs {
			if r != canon.Void {
				r = to[r]
			}
			c.Refs = append(c.Refs, r)
		}
		out[to[i]] = &c
	}
	return out
}

// TestOrder wants the same bytes whatever the order of the input, and named
// types behind anonymous ones.
func TestOrder(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		types := random(rnd, 1+rnd.IntN(60))
		want := canon.Write(merge(t, permute(rnd, types)), binary.LittleEndian)
		merged := merge(t, types)
		if got := canon.Write(merged, binary.LittleEndian); !bytes.Equal(got, want) {
			t.Fatalf("%d bytes in one order, %d in another differ", len(got), len(want))
		}
		if len(merged) > len(types) {
			t.Fatalf("%d types came of %d", len(merged), len(types))
		}
		v, err := rawbtf.New(want, nil)
		if err != nil {
			t.Fatal(err)
		}
		named := false
		for id := btfenc.TypeID(1); int(id) < v.NumTypes(); id++ {
			u := v.Type(id)
			if named && u.NameOff == 0 {
				t.Fatalf("type %d: anonymous after a named one", id)
			}
			named = named || u.NameOff != 0
		}
	}
}

// TestMerge checks what is merged and what is not.
func TestMerge(t *testing.T) {
	integer := func() *canon.Type {
		return &canon.Type{Kind: btfenc.KindInt, Name: "int", Size: 4, Fields: []canon.Field{{Lo: 32}}}
	}
	list := func(next int) *canon.Type { // struct list { struct list *next; }, by its pointer
		return &canon.Type{Kind: btfenc.KindStruct, Name: "list", Size: 8, Fields: []canon.Field{{Name: "next"}}, Refs: []int{next}}
	}
	ptr := func(to int) *canon.Type { return &canon.Type{Kind: btfenc.KindPtr, Refs: []int{to}} }
	twice := integer()
	twice.Copies = 1
	other := *twice
	for _, tc := range []struct {
		name  string
		types []*canon.Type
		want  int
	}{
		{"nothing", nil, 0},
		{"equal integers", []*canon.Type{integer(), integer(), nil}, 1},
		{"equal integers that are counted", []*canon.Type{twice, &other}, 2},
		{"a cycle and the same one unrolled", []*canon.Type{list(1), ptr(0), list(3), ptr(4), list(5), ptr(2)}, 2},
		{"a cycle and a chain", []*canon.Type{list(1), ptr(0), list(3), ptr(canon.Void)}, 4},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := merge(t, tc.types); len(got) != tc.want {
				t.Errorf("%d types, want %d", len(got), tc.want)
			}
		})
	}
}
