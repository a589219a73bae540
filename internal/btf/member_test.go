// SPDX-License-Identifier: Apache-2.0

package btf_test

import (
	"encoding/binary"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
)

// TestHasMemberEnds looks for a member in a struct that contains itself so often that an
// unbounded search would not end.
func TestHasMemberEnds(t *testing.T) {
	b := btf.NewBuilder(binary.LittleEndian)
	b.Type("s", btf.KindStruct, false, 5000, 8)
	for range 4999 {
		b.Word(0, 1, 0)
	}
	b.Word(b.String("last"), 0, 0)
	v, err := btf.New(b.Bytes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := v.Type(1)
	if v.HasMember(&s, "none") {
		t.Error("has a member that is not there")
	}
}
