// SPDX-License-Identifier: Apache-2.0

package rawbtf_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/btfenc"
	"github.com/btfgen/btfgen/internal/rawbtf"
)

// TestFind looks for names of all lengths, with and without flavors, one of
// them the last string of the section.
func TestFind(t *testing.T) {
	list := []string{"a", "a___x", "a_", "a__", "ab", "ab___x", "abc", "abc___x", "abcd", "abcd___x", "abcde", "abcdf", "b", "xyz", "z"}
	b := btfenc.NewBuilder(binary.LittleEndian)
	for _, name := range list {
		b.Type(name, btfenc.KindFwd, false, 0, 0)
	}
	v, err := rawbtf.New(b.Bytes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, asked := range [][]string{
		{"a"}, {"ab"}, {"abc"}, {"abcd"}, {"abcde"}, {"a_"}, {"z"}, {"a", "abcdf"}, {"xyz", "abc", "ab"}, {"y", "abce", "abcdef"}, nil,
	} {
		found, err := v.Find(t.Context(), rawbtf.NewNames(asked), len(asked), nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, name := range asked {
			var want []btfenc.TypeID
			for j, have := range list {
				if rawbtf.Essential(have) == name {
					want = append(want, btfenc.TypeID(j+1))
				}
			}
			if !slices.Equal(found[i], want) {
				t.Errorf("asked for %q: %q is %d, want %d", asked, name, found[i], want)
			}
		}
	}
}
