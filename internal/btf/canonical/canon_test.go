// SPDX-License-Identifier: Apache-2.0

package canonical_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/btf/canonical"
)

func merge(tb testing.TB, types []*canonical.Type) []*canonical.Type {
	tb.Helper()
	merged, err := canonical.Merge(context.Background(), types)
	if err != nil {
		tb.Fatal(err)
	}
	return merged
}

// random returns n types with random references, including cycles and equal types.
func random(rnd *rand.Rand, n int) []*canonical.Type {
	types := make([]*canonical.Type, n)
	ref := func() int { return rnd.IntN(n+1) - 1 } // canonical.Void included
	for i := range types {
		switch rnd.IntN(6) {
		case 0:
			types[i] = &canonical.Type{Kind: btf.KindInt, Name: "int", Size: 4, Fields: []canonical.Field{{Lo: 32}}}
		case 1:
			types[i] = &canonical.Type{Kind: btf.KindPtr, Refs: []int{ref()}}
		case 2:
			types[i] = &canonical.Type{Kind: btf.KindArray, Fields: []canonical.Field{{Lo: uint32(rnd.IntN(2))}}, Refs: []int{ref(), ref()}}
		case 3:
			types[i] = &canonical.Type{Kind: btf.KindEnum, Name: "e", Size: 4, Fields: []canonical.Field{{Name: "A", Lo: uint32(rnd.IntN(2))}}}
		case 4:
			t := &canonical.Type{Kind: btf.KindStruct, Size: 8, Name: []string{"", "s", "t"}[rnd.IntN(3)], Copies: rnd.IntN(10) / 9, Order: rnd.IntN(3)}
			for f := range rnd.IntN(3) {
				t.Fields = append(t.Fields, canonical.Field{Name: fmt.Sprint("f", f), Lo: uint32(f) * 32})
				t.Refs = append(t.Refs, ref())
			}
			types[i] = t
		case 5:
			kind := []btf.Kind{btf.KindFunc, btf.KindVar}[rnd.IntN(2)]
			types[i] = &canonical.Type{Kind: kind, Name: "s", Fields: []canonical.Field{{Lo: uint32(rnd.IntN(3))}}, Refs: []int{ref()}}
		}
	}
	return types
}

// permute returns the same types in another order.
func permute(rnd *rand.Rand, types []*canonical.Type) []*canonical.Type {
	to := rnd.Perm(len(types))
	out := make([]*canonical.Type, len(types))
	for i, t := range types {
		c := *t
		c.Refs = nil
		for _, r := range t.Refs {
			if r != canonical.Void {
				r = to[r]
			}
			c.Refs = append(c.Refs, r)
		}
		out[to[i]] = &c
	}
	return out
}

// TestOrder checks that any order of the input gives the same bytes, with named types
// behind anonymous ones.
func TestOrder(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		types := random(rnd, 1+rnd.IntN(60))
		want := canonical.Write(merge(t, permute(rnd, types)), binary.LittleEndian)
		merged := merge(t, types)
		if got := canonical.Write(merged, binary.LittleEndian); !bytes.Equal(got, want) {
			t.Fatalf("%d bytes in one order, %d in another differ", len(got), len(want))
		}
		if len(merged) > len(types) {
			t.Fatalf("%d types came of %d", len(merged), len(types))
		}
		v, err := btf.New(want, nil)
		if err != nil {
			t.Fatal(err)
		}
		named := false
		for id := btf.TypeID(1); int(id) < v.NumTypes(); id++ {
			u := v.Type(id)
			if named && u.NameOff == 0 {
				t.Fatalf("type %d: anonymous after a named one", id)
			}
			named = named || u.NameOff != 0
		}
	}
}

// TestMerge checks which types are merged.
func TestMerge(t *testing.T) {
	integer := func() *canonical.Type {
		return &canonical.Type{Kind: btf.KindInt, Name: "int", Size: 4, Fields: []canonical.Field{{Lo: 32}}}
	}
	list := func(next int) *canonical.Type { // struct list { struct list *next; }, by its pointer
		return &canonical.Type{Kind: btf.KindStruct, Name: "list", Size: 8, Fields: []canonical.Field{{Name: "next"}}, Refs: []int{next}}
	}
	ptr := func(to int) *canonical.Type { return &canonical.Type{Kind: btf.KindPtr, Refs: []int{to}} }
	twice := integer()
	twice.Copies = 1
	other := *twice
	for _, tc := range []struct {
		name  string
		types []*canonical.Type
		want  int
	}{
		{"nothing", nil, 0},
		{"equal integers", []*canonical.Type{integer(), integer(), nil}, 1},
		{"equal integers that are counted", []*canonical.Type{twice, &other}, 2},
		{"a cycle and the same one unrolled", []*canonical.Type{list(1), ptr(0), list(3), ptr(4), list(5), ptr(2)}, 2},
		{"a cycle and a chain", []*canonical.Type{list(1), ptr(0), list(3), ptr(canonical.Void)}, 4},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := merge(t, tc.types); len(got) != tc.want {
				t.Errorf("%d types, want %d", len(got), tc.want)
			}
		})
	}
}
