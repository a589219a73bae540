// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/btf/canonical"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// TestSizes counts the bytes of types that kernels have alone: an int is a record of 16 bytes, a struct with a member 24.
func TestSizes(t *testing.T) {
	of := func(release string, offset uint32) archive.Kernel {
		types := []*canonical.Type{
			{Kind: btf.KindInt, Name: "int", Size: 4, Copies: 1, Fields: []canonical.Field{{Lo: 32}}},
			{Kind: btf.KindStruct, Name: "s", Size: 64, Copies: 1, Fields: []canonical.Field{{Name: "m", Lo: offset}}, Refs: []int{0}},
		}
		k := kernel.Key{ID: "d", Arch: "x86_64", Release: release}
		return archive.Kernel{Key: k, BTF: encoded(t, types, binary.LittleEndian)}
	}
	const header, names = btf.HeaderLen, len("\x00int\x00s\x00m\x00")
	for _, tt := range []struct {
		name    string
		kernels []archive.Kernel
		own     []int
	}{
		{"one kernel", []archive.Kernel{of("1", 0)}, []int{40}},
		{"equal kernels", []archive.Kernel{of("1", 0), of("2", 0)}, []int{0, 0}},
		{"another struct", []archive.Kernel{of("1", 0), of("2", 32)}, []int{24, 24}},
		{"a third one", []archive.Kernel{of("1", 0), of("2", 32), of("3", 0)}, []int{0, 24, 0}},
	} {
		sizes, err := mustOpen(t, mustWrite(t, tt.kernels)).Sizes()
		if err != nil {
			t.Fatal(err)
		}
		var own []int
		for i, s := range sizes {
			own = append(own, s.Own)
			if s.Key != tt.kernels[i].Key || s.BTF != header+40+names {
				t.Errorf("%s: %+v", tt.name, s)
			}
		}
		if !slices.Equal(own, tt.own) {
			t.Errorf("%s: %v bytes, want %v", tt.name, own, tt.own)
		}
	}
}
