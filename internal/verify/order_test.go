// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/btfgen/btfgen/internal/testbtf"
	"github.com/btfgen/btfgen/pkg/relolog"
)

// TestOrder minimizes kernels where a decision depends on the order of the
// types of one name, and verifies the result.
func TestOrder(t *testing.T) {
	for _, c := range []struct {
		name, local, asks string
		operands          []uint64
		kernel            string
	}{
		{
			name:     "cilium/ebpf takes the second, unless the third comes before it",
			local:    "struct req 12: a int 0, b int 4, c int 8",
			asks:     "byte_off struct req.a\n byte_off struct req.b\n byte_off struct req.b\n byte_off struct req.c",
			operands: []uint64{0, 4, 4, 8},
			kernel:   "struct req 12: b int 4\n struct req#2 12: a int 0, b int 4, c int 8\n struct req#3 12: a int 0, c int 8",
		},
		{
			name:     "cilium/ebpf links a function into the program that calls it",
			local:    "struct req 12: a int 0, b int 4, c int 8",
			asks:     "program a\n byte_off struct req.a\n call b\n function b\n byte_off struct req.b\n program c\n byte_off struct req.c",
			operands: []uint64{0, 4, 8},
			kernel:   "struct req 12: a int 0, c int 8\n struct req#2 12: a int 0, b int 4, c int 8\n struct req#3 12: b int 4",
		},
		{
			name:     "the first candidate has the size of the load",
			local:    "struct req 4: a u32 0",
			asks:     "byte_off struct req.a",
			operands: []uint64{0},
			kernel:   "struct req 24: a u64 0, b u64 8, c u64 16\n struct req#2 8: a u32 0, d u32 4",
		},
		{
			name:     "three that differ, and a copy of the first",
			local:    "struct req 4: a u32 0, b u32 0",
			asks:     "byte_off struct req.a\n field_exists struct req.b",
			operands: []uint64{0, 1},
			kernel:   "struct req 24: a u64 0\n struct req#2 8: a u32 0, b u32 4\n struct req#3 24: a u64 0\n struct req#4 16: a u64 0",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := testbtf.Object(t, binary.LittleEndian, c.local, c.asks, c.operands...)
			o, err := relolog.ParseObject("o", data)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "kernel.btf")
			kernel := testbtf.Types(t, binary.LittleEndian, c.kernel)
			if err := os.WriteFile(path, kernel, 0o600); err != nil {
				t.Fatal(err)
			}
			obj := Object{Object: o, Data: data}
			rep := verifyOne(t, path, minimized(t, kernel, obj), obj)
			if len(rep.Notes) > 0 {
				t.Errorf("not read in full: %+v", rep.Notes)
			}
			for _, d := range rep.Kernels[0].Differences {
				t.Errorf("%+v", d)
			}
		})
	}
}
