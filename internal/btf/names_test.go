// SPDX-License-Identifier: Apache-2.0

package btf_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
)

// TestFind looks for names of all lengths, with and without flavors. One is the last
// string of the section.
func TestFind(t *testing.T) {
	list := []string{"a", "a___x", "a_", "a__", "ab", "ab___x", "abc", "abc___x", "abcd", "abcd___x", "abcde", "abcdf", "b", "xyz", "z"}
	b := btf.NewBuilder(binary.LittleEndian)
	for _, name := range list {
		b.Type(name, btf.KindFwd, false, 0, 0)
	}
	v, err := btf.New(b.Bytes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, asked := range [][]string{
		{"a"}, {"ab"}, {"abc"}, {"abcd"}, {"abcde"}, {"a_"}, {"z"}, {"a", "abcdf"}, {"xyz", "abc", "ab"}, {"y", "abce", "abcdef"}, nil,
	} {
		found, err := v.Find(t.Context(), btf.NewNames(asked), len(asked), nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, name := range asked {
			var want []btf.TypeID
			for j, have := range list {
				if btf.Essential(have) == name {
					want = append(want, btf.TypeID(j+1))
				}
			}
			if !slices.Equal(found[i], want) {
				t.Errorf("asked for %q: %q is %d, want %d", asked, name, found[i], want)
			}
		}
	}
}
