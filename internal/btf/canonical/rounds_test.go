// SPDX-License-Identifier: Apache-2.0

package canonical_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/btf/canonical"
)

// byRounds numbers the classes of types as in docs/archive-format.md. It is simple, and
// takes as many rounds as the longest chain has links.
func byRounds(types []*canonical.Type) (class []int) {
	keys := make([][]byte, len(types))
	for i, o := range types {
		b := []byte{0}
		if o.Name != "" {
			b = append(append([]byte{1}, o.Name...), 0)
		}
		b = append(b, byte(o.Kind), 0)
		if o.Flag {
			b[len(b)-1] = 1
		}
		b = binary.BigEndian.AppendUint32(b, o.Size)
		b = binary.BigEndian.AppendUint32(b, uint32(len(o.Fields)))
		for _, f := range o.Fields {
			b = append(append(b, f.Name...), 0)
			b = binary.BigEndian.AppendUint32(b, f.Hi)
			b = binary.BigEndian.AppendUint32(b, f.Lo)
		}
		keys[i] = b
	}
	class = make([]int, len(types))
	for n := 0; ; {
		sorted := slices.Clone(keys)
		slices.SortFunc(sorted, bytes.Compare)
		sorted = slices.CompactFunc(sorted, bytes.Equal)
		for i := range types {
			class[i], _ = slices.BinarySearchFunc(sorted, keys[i], bytes.Compare)
		}
		if len(sorted) == n {
			return class
		}
		n = len(sorted)
		for i, o := range types {
			keys[i] = binary.BigEndian.AppendUint32(nil, uint32(class[i]))
			for _, r := range o.Refs {
				c := 0
				if r != canonical.Void {
					c = class[r] + 1
				}
				keys[i] = binary.BigEndian.AppendUint32(keys[i], uint32(c))
			}
		}
	}
}

// compareOrder compares Merge with byRounds: one type for each class, or as many as its
// Copies, in the order of the classes, and types with one name in their own order.
func compareOrder(t *testing.T, name string, types []*canonical.Type) {
	t.Helper()
	class := byRounds(types)
	classes := 0
	for _, c := range class {
		classes = max(classes, c+1)
	}
	type copied struct {
		*canonical.Type
		class, order int
	}
	var all []copied
	for c := range classes {
		one, from := copied{nil, c, math.MaxInt}, len(all)
		for i, o := range types {
			if class[i] == c {
				clone := *o
				clone.Refs = slices.Clone(o.Refs)
				one.Type, one.order = &clone, min(one.order, o.Order)
				for range o.Copies {
					all = append(all, copied{nil, c, o.Order})
				}
			}
		}
		for i := range all[from:] {
			all[from+i].Type = one.Type
		}
		if len(all) == from {
			all = append(all, one)
		}
	}
	slices.SortStableFunc(all, func(a, b copied) int {
		if a.Name == "" || a.Name != b.Name {
			return cmp.Compare(a.Name, b.Name)
		}
		return cmp.Compare(a.order, b.order)
	})
	var want []*canonical.Type
	at := make(map[int]int)
	for i, o := range all {
		want = append(want, o.Type)
		if _, ok := at[o.class]; !ok {
			at[o.class] = i
		}
	}
	seen := make(map[*canonical.Type]bool)
	for _, o := range want {
		for i, r := range o.Refs {
			if r != canonical.Void && !seen[o] {
				o.Refs[i] = at[class[r]]
			}
		}
		seen[o] = true
	}
	order := binary.LittleEndian
	if got := canonical.Write(merge(t, types), order); !bytes.Equal(got, canonical.Write(want, order)) {
		b, err := btf.New(got, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		t.Fatalf("%s: %d types of %d, want %d in %d classes, or another order", name, b.NumTypes()-1, len(types), len(want), classes)
	}
}
