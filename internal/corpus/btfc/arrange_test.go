// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
)

// TestArranged compares the order of types with one that is found slowly: functions that are in order and others, few and many, names that begin alike
// and such that are there more than once.
func TestArranged(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 30, 3 * fewNames} {
		for _, inOrder := range []bool{true, false} {
			b := btf.NewBuilder(binary.LittleEndian)
			proto := b.Type("", btf.KindFuncProto, false, 0, 0)
			name := func() string {
				return fmt.Sprintf("%s%d", strings.Repeat("alike", r.IntN(6)), r.IntN(n))
			}
			var funcs []string
			for range 2 * n {
				funcs = append(funcs, name())
			}
			if inOrder {
				slices.Sort(funcs)
			}
			for _, f := range funcs {
				switch r.IntN(3) {
				case 0:
					b.Type(name(), btf.KindStruct, false, 0, 0)
				case 1:
					proto = b.Type("", btf.KindFuncProto, false, 0, 0)
				case 2:
					b.Type("", btf.KindPtr, false, 0, uint32(proto))
				}
				b.Type(f, btf.KindFunc, false, 0, uint32(proto))
			}
			st, err := open(t, written(t, nil, in("6.1.0-1-amd64", b.Bytes()))).states.get(ctx, 0)
			if err != nil {
				t.Fatal(err)
			}
			for how := range numArranges {
				got, err := st.arranged(how)
				if want := arrangedSlowly(st, how); err != nil || !slices.Equal(got, want) {
					t.Errorf("%d functions, in order: %v, arrangement %d: error %v, %d\nwant %d", n, inOrder, how, err, got, want)
				}
			}
		}
	}
}

// arrangedSlowly is state.arranged, from its description in docs/corpus-format.md.
func arrangedSlowly(st *state, how int) []uint32 {
	kind := func(i uint32) btf.Kind { return btf.Kind(st.content(st.types[i])[1] >> 24 & 0x7f) }
	name := func(i uint32) string { return string(st.name(st.content(st.types[i])[0])) }
	var first, last []uint32
	for i := range uint32(len(st.types)) {
		if how == arrangeFunctions && kind(i) == btf.KindFunc || how == arrangeNames && name(i) != "\x00" {
			last = append(last, i)
		} else {
			first = append(first, i)
		}
	}
	slices.SortStableFunc(last, func(a, b uint32) int { return strings.Compare(name(a), name(b)) })
	if how != arrangeFunctions {
		return append(first, last...)
	}
	before := make(map[uint32]bool) // prototypes that come before a function
	var out []uint32
	for _, f := range last {
		to := st.content(st.types[f])[2]
		for i := range uint32(len(st.types)) - 1 {
			if kind(i) == btf.KindFuncProto && st.entity(st.types[i]) == to && kind(i+1) == btf.KindFunc && st.content(st.types[i+1])[2] == to && !before[i] {
				before[i] = true
				out = append(out, i)
			}
		}
		out = append(out, f)
	}
	return append(slices.DeleteFunc(first, func(i uint32) bool { return before[i] }), out...)
}

// Names that would take long to be compared are not sorted.
func TestLongNames(t *testing.T) {
	for _, length := range []int{longNames - 10, longNames + 1} {
		b := btf.NewBuilder(binary.LittleEndian)
		for i := range 100 {
			b.Type(fmt.Sprintf("%s%d", strings.Repeat("x", length), i%7), btf.KindStruct, false, 0, 0)
		}
		st, err := open(t, written(t, nil, in("6.1.0-1-amd64", b.Bytes()))).states.get(ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := st.arranged(arrangeNames); errors.Is(err, errLong) != (length > longNames) {
			t.Errorf("names of %d bytes: error %v", length, err)
		}
	}
}
