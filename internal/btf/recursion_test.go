// SPDX-License-Identifier: Apache-2.0

package btf_test

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/internal/testing/testlimit"
)

// loops reports whether a type leads back to itself without a struct or union. It tries
// all paths.
func loops(b *btf.BTF) bool {
	var on map[btf.TypeID]bool
	var visit func(id btf.TypeID) bool
	visit = func(id btf.TypeID) bool {
		if on[id] {
			return true
		}
		on[id] = true
		defer delete(on, id)
		t := b.Type(id)
		var refs []btf.TypeID
		switch t.Kind() {
		case btf.KindPtr, btf.KindTypedef:
			refs = append(refs, t.Ref())
		case btf.KindArray:
			refs = append(refs, t.Array().Elem, t.Array().Index)
		case btf.KindFuncProto:
			refs = append(refs, t.Ref())
			for i := range t.Vlen() {
				refs = append(refs, t.Param(i).Type)
			}
		}
		for _, r := range refs {
			if r != 0 && visit(r) {
				return true
			}
		}
		return false
	}
	for id := btf.TypeID(1); int(id) < b.NumTypes(); id++ {
		on = make(map[btf.TypeID]bool)
		if visit(id) {
			return true
		}
	}
	return false
}

// TestCheckRecursion compares CheckRecursion with loops.
func TestCheckRecursion(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	looped := 0
	for range 5000 {
		n := 1 + rnd.IntN(7)
		b := btf.NewBuilder(binary.LittleEndian)
		ref := func() uint32 { return uint32(rnd.IntN(n + 1)) }
		for range n {
			switch rnd.IntN(6) {
			case 0:
				b.Type("i", btf.KindInt, false, 0, 4)
				b.Word(32)
			case 1:
				b.Type("", btf.KindPtr, false, 0, ref())
			case 2:
				b.Type("", btf.KindArray, false, 0, 0)
				b.Word(ref(), ref(), 2)
			case 3:
				b.Type("s", btf.KindStruct, false, 2, 8)
				b.Word(b.String("a"), ref(), 0, b.String("b"), ref(), 32)
			case 4:
				b.Type("", btf.KindFuncProto, false, 1, ref())
				b.Word(0, ref())
			case 5:
				b.Type("t", btf.KindTypedef, false, 0, ref())
			}
		}
		v, err := btf.New(b.Bytes(), nil)
		if err != nil {
			t.Fatal(err)
		}
		err = btf.CheckRecursion(t.Context(), v)
		want := loops(v)
		if want {
			looped++
		}
		if (err != nil) != want {
			t.Fatalf("error %v, want one: %v; % x", err, want, b.Bytes())
		}
	}
	if looped == 0 || looped == 5000 {
		t.Errorf("%d loops", looped)
	}
}

// TestCheckRecursionKernels checks that real kernels pass, that cycles in a module are
// found, and that the check ends with its context.
func TestCheckRecursionKernels(t *testing.T) {
	for _, k := range testinput.Kernels(t) {
		base, err := btf.New(k.BTF, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := btf.CheckRecursion(t.Context(), base); err != nil {
			t.Errorf("%s: %v", k.Name, err)
		}
		if err := btf.CheckRecursion(testlimit.Looks(2), base); err != context.Canceled {
			t.Errorf("%s: error %v", k.Name, err)
		}
		b := btf.NewBuilder(binary.LittleEndian)
		b.Type("", btf.KindPtr, false, 0, uint32(base.NumTypes()))
		module, err := btf.New(b.Bytes(), base)
		if err == nil && base.Order() == binary.LittleEndian {
			err = btf.CheckRecursion(t.Context(), base, module)
			if err == nil || !strings.Contains(err.Error(), "leads back to itself") {
				t.Errorf("%s: error %v", k.Name, err)
			}
		}
	}
	one := testbtf.Types(t, binary.LittleEndian, "struct s 8: next *s 0\nstruct u 8: u u 0\n")
	if v, err := btf.New(one, nil); err != nil || btf.CheckRecursion(t.Context(), v) != nil {
		t.Error(err, "structs that lead back to themselves are refused")
	}
}
