// SPDX-License-Identifier: Apache-2.0

package canonical_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/btf/canonical"
)

// byRounds numbers the classes of types as docs/archive-format.md has it, which
// is easy to read and takes as many rounds as the longest chain has links.
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

// compareOrder compares Merge with byRounds: one type for each class, or as many
// as are wanted, in the order of the classes.
func compareOrder(t *testing.T, name string, types []*canonical.Type) {
	t.Helper()
	class := byRounds(types)
	classes := 0
	for _, c := range class {
		classes = max(classes, c+1)
	}
	var want []*canonical.Type
	at := make([]int, classes)
	for c := range classes {
		at[c] = len(want)
		var one *canonical.Type
		copies := 0
		for i, o := range types {
			if class[i] == c {
				copies += o.Copies
				one = o
			}
		}
		o := *one
		o.Refs = slices.Clone(o.Refs)
		for range max(1, copies) {
			want = append(want, &o)
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
