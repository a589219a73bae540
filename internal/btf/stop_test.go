// SPDX-License-Identifier: Apache-2.0

package btf_test

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testlimit"
)

// TestLoadStops checks that the walk over many types, the search for a bad one, and Find
// end with the context.
func TestLoadStops(t *testing.T) {
	slow.Skip(t)
	b := btf.NewBuilder(binary.LittleEndian)
	name := b.String("s")
	const n = 3 << 20
	for range n - 1 {
		b.Word(name, uint32(btf.KindStruct)<<24, 8)
	}
	data := b.Bytes()
	var v btf.BTF
	for looks := range 2 {
		if err := v.Load(testlimit.Looks(looks), data, nil); err != context.Canceled || v.NumTypes() != 1 {
			t.Errorf("%d looks: %d types, error %v", looks, v.NumTypes(), err)
		}
	}
	ctx := testlimit.Looks(10)
	if err := v.Load(ctx, data, nil); err != nil || v.NumTypes() != n {
		t.Fatalf("%d types, error %v", v.NumTypes(), err)
	}
	if _, err := v.Find(testlimit.Looks(100), btf.NewNames([]string{"x"}), 1, nil); err != context.Canceled {
		t.Errorf("Find: error %v", err)
	}
	bad := data
	binary.LittleEndian.PutUint32(bad[24+12*(n-2):], 1000)
	if err := v.Load(testlimit.Looks(10-ctx.Left), bad, nil); err != context.Canceled {
		t.Errorf("bad BTF: error %v", err)
	}
	if err := v.Load(t.Context(), bad, nil); err == nil || err.Error() != "types: type 3145727 (struct) has a name at byte 1000, strings end at 3" {
		t.Errorf("bad BTF: error %v", err)
	}
}
