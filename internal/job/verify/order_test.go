// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/minimize"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/internal/testing/testinput"
)

// TestOrder minimizes kernels on which a decision depends on the order of types with one name, and verifies the result.
func TestOrder(t *testing.T) {
	raceflag.SkipSerial(t)
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
		{
			name:     "the first candidate has a flavor, and its size is not the local one",
			local:    "struct req 0:",
			asks:     "byte_off struct req",
			operands: []uint64{0},
			kernel:   "struct req___1 8:\n struct req 0:",
		},
		{
			name:     "the first long says how large pointers are",
			local:    "struct req 8: a *void 0\n int long 4 signed",
			asks:     "rshift_u64 struct req.a\n type_exists long",
			operands: []uint64{0, 1},
			kernel:   "int long 8\n int long#2 4 signed\n struct req 8: a *void 0",
		},
		{
			name:     "the first long says how small pointers are",
			local:    "struct req 8: a *void 0\n int long 4 signed",
			asks:     "byte_sz struct req.a\n type_exists long",
			operands: []uint64{8, 1},
			kernel:   "int long 4\n int long#2 8 signed\n struct req 8: a *void 0",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := testbtf.Object(t, binary.LittleEndian, c.local, c.asks, c.operands...)
			o, err := core.ParseObject("o", data)
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

// TestRandomOrder does the same with random types, programs and functions. cilium/ebpf's own code decides.
func TestRandomOrder(t *testing.T) {
	raceflag.SkipSerial(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	for round := range 150 {
		var kernel, asks strings.Builder
		for i := range 2 + rnd.IntN(4) {
			fmt.Fprintf(&kernel, "struct req#%d %d:", i+1, 12+4*rnd.IntN(3))
			sep := " "
			for n, name := range []string{"a", "b", "c"} {
				if rnd.IntN(3) > 0 {
					fmt.Fprintf(&kernel, "%s%s %s %d", sep, name, []string{"u32", "u32", "u64"}[rnd.IntN(3)], 4*n+4*(rnd.IntN(8)/7))
					sep = ", "
				}
			}
			kernel.WriteByte('\n')
		}
		var operands []uint64
		ask := func() {
			for range 1 + rnd.IntN(3) {
				n := rnd.IntN(3)
				if rnd.IntN(4) == 0 {
					fmt.Fprintf(&asks, "field_exists struct req.%c\n", 'a'+n)
					operands = append(operands, 1)
				} else {
					fmt.Fprintf(&asks, "byte_off struct req.%c\n", 'a'+n)
					operands = append(operands, uint64(4*n))
				}
			}
		}
		for i := range 1 + rnd.IntN(3) {
			fmt.Fprintf(&asks, "program p%d\n", i)
			ask()
			if rnd.IntN(2) == 0 {
				fmt.Fprintf(&asks, "call f%d\n", rnd.IntN(2))
			}
		}
		for i := range 2 {
			fmt.Fprintf(&asks, "function f%d\n", i)
			ask()
			if i == 0 && rnd.IntN(2) == 0 {
				asks.WriteString("call f1\n")
			}
		}
		data := testbtf.Object(t, binary.LittleEndian, "struct req 12: a u32 0, b u32 4, c u32 8", asks.String(), operands...)
		o, err := core.ParseObject("o", data)
		if err != nil {
			t.Fatal(err)
		}
		full := testbtf.Types(t, binary.LittleEndian, kernel.String())
		target, err := testinput.NewKernel("kernel", full)
		if err != nil {
			t.Fatal(err)
		}
		small, err := minimize.New([]*core.Object{o}, minimize.Options{}).Minimize(t.Context(), target)
		if err != nil {
			t.Errorf("round %d: %v\n%s%s", round, err, kernel.String(), asks.String())
			continue
		}
		path := filepath.Join(dir, "kernel.btf")
		if err := os.WriteFile(path, full, 0o600); err != nil {
			t.Fatal(err)
		}
		rep := verifyOne(t, path, small.BTF, Object{Object: o, Data: data})
		for _, d := range rep.Kernels[0].Differences {
			t.Errorf("round %d: %+v\n%s%s", round, d, kernel.String(), asks.String())
		}
		for _, n := range rep.Notes {
			if n.Reason != "" { // else a function that no program calls
				t.Errorf("round %d: %s", round, n.Reason)
			}
		}
	}
}
