// SPDX-License-Identifier: Apache-2.0

package btf_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
)

const kernelTypes = "struct other 4: a int 0\nstruct list 16: next u64 0, prev u64 8\nstruct big 8: a int 0\nstruct big#2 4: a int 0\nenum mode 4: ON 1\n"

// TestRelocate relocates modules whose base has other IDs and names than the kernel.
func TestRelocate(t *testing.T) {
	kernel := testbtf.Types(t, binary.LittleEndian, kernelTypes)
	for _, tt := range []struct{ name, base, module, want, err string }{
		{"by value", "struct list 16:", "struct mine 24: at list 0, n int 16", "struct mine 24: at list 0, n int 16", ""},
		{"forward", "fwd list struct", "typedef alias list", "typedef alias list", ""},
		{"enum", "enum mode 4:", "struct mine 4: m mode 0", "struct mine 4: m mode 0", ""},
		{"one of two, by size", "struct big 4:", "struct mine 4: m big 0", "struct mine 4: m big#2 0", ""},
		{"another size", "struct list 8:", "struct mine 8: at list 0", "", "the kernel has no struct list of its size"},
		{"another kind", "fwd list union", "typedef alias list", "", "the kernel has no fwd list"},
		{"missing", "struct gone 8:", "struct mine 8: at gone 0", "", "the kernel has no struct gone"},
		{"several", "fwd big struct", "typedef alias big", "", "the kernel has several types for fwd big"},
	} {
		base := testbtf.Types(t, binary.LittleEndian, tt.base)
		b, err := btf.New(kernel, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := btf.Relocate(t.Context(), testbtf.Module(t, binary.LittleEndian, tt.base, tt.module), base, b)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %v, want %s", tt.name, err, tt.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if want := testbtf.Module(t, binary.LittleEndian, kernelTypes, tt.want); !bytes.Equal(got, want) {
			t.Errorf("%s:\n%x, want\n%x", tt.name, got, want)
		}
	}
}

// FuzzRelocate relocates any module on any base: the result can be read on top of the kernel.
func FuzzRelocate(f *testing.F) {
	kernel := testbtf.Types(f, binary.LittleEndian, kernelTypes)
	b, err := btf.New(kernel, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(testbtf.Module(f, binary.LittleEndian, "struct list 16:", "struct mine 24: at list 0, n int 16"), testbtf.Types(f, binary.LittleEndian, "struct list 16:"))
	f.Fuzz(func(t *testing.T, split, base []byte) {
		if out, err := btf.Relocate(t.Context(), split, base, b); err == nil {
			if _, err := btf.New(out, b); err != nil {
				t.Error(err)
			}
		}
	})
}
