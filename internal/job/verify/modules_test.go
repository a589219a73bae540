// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/minimize"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
)

// withModules returns a kernel in the notation of testbtf. modules are named m0, m1, …
func withModules(tb testing.TB, vmlinux string, modules ...string) *corpus.Kernel {
	tb.Helper()
	k := &corpus.Kernel{Name: "kernel", BTF: testbtf.Types(tb, binary.LittleEndian, vmlinux)}
	for i, types := range modules {
		k.Modules = append(k.Modules, core.Module{Name: fmt.Sprint("m", i), BTF: testbtf.Module(tb, binary.LittleEndian, vmlinux, types)})
	}
	return k
}

// judge minimizes a kernel and returns the output with what loaders decide differently on it.
func judge(tb testing.TB, k *corpus.Kernel, o Object) (out []byte, differ []string, err error) {
	tb.Helper()
	var target core.Kernel
	if err := k.Load(tb.Context(), &target, k.Name); err != nil {
		tb.Fatal(err)
	}
	res, err := minimize.New([]*core.Object{o.Object}, minimize.Options{}).Minimize(tb.Context(), &target)
	if err != nil {
		return nil, nil, err
	}
	j := NewJudge(tb.Context(), Config{Objects: []Object{o}})
	if err := j.Load(tb.Context(), k); err != nil {
		tb.Fatal(err)
	}
	got, err := j.Compare(tb.Context(), res.BTF)
	if err != nil {
		tb.Fatal(err)
	}
	if got.Fixups == 0 {
		tb.Error("nothing compared for cilium/ebpf")
	}
	for _, d := range got.Differences {
		differ = append(differ, fmt.Sprintf("%s: %s: %s, minimized %s", d.Loader, d.Relocation, d.Full, d.Minimized))
	}
	return res.BTF, differ, nil
}

// TestModules minimizes kernels whose modules have types that vmlinux has, too. cilium/ebpf looks at all of them, libbpf and aya
// at vmlinux's.
func TestModules(t *testing.T) {
	raceflag.SkipSerial(t)
	for _, c := range []struct {
		name, local, asks string
		operands          []uint64
		vmlinux           string
		modules           []string
		refused           bool // loaders cannot all decide as on the full BTF
	}{
		{
			name:     "a field that only a module's struct has",
			local:    "struct opts 8: a int 0, b int 4",
			asks:     "byte_off struct opts.b",
			operands: []uint64{4},
			vmlinux:  "struct opts 4: a int 0",
			modules:  []string{"struct opts 12: a int 0, b int 8"},
		},
		{
			name:     "a module's struct makes it ambiguous",
			local:    "struct opts 8: a int 0, b int 4",
			asks:     "byte_off struct opts.a",
			operands: []uint64{0},
			vmlinux:  "struct opts 4: a int 0",
			modules:  []string{"struct opts 12: x int 0, a int 8"},
		},
		{
			name:     "the first of two that disagree is the only one in vmlinux",
			local:    "struct opts 8: a int 0, b int 4",
			asks:     "byte_off struct opts.a\n byte_off struct opts.b",
			operands: []uint64{0, 4},
			vmlinux:  "struct opts 4: a int 0",
			modules:  []string{"struct opts 12: x int 0, a int 8", "struct opts 12: a int 4, b int 8"},
		},
		{
			name:     "a copy of vmlinux's struct",
			local:    "struct opts 8: a int 0",
			asks:     "byte_off struct opts.a\n target_type_id struct opts",
			operands: []uint64{0, 5},
			vmlinux:  "struct opts 4: a int 0",
			modules:  []string{"struct opts 4: a int 0", "struct opts 4: a int 0"},
		},
		{
			name:     "an enumerator",
			local:    "enum e 4: A 1, B 2",
			asks:     "enumval_value enum e::B",
			operands: []uint64{2},
			vmlinux:  "enum e 4: A 1",
			modules:  []string{"enum e 4: A 1, B 7"},
		},
		{
			name:     "a type that only modules have",
			local:    "struct opts 8: a int 0",
			asks:     "byte_off struct opts.a\n target_type_id struct opts\n type_exists struct opts",
			operands: []uint64{0, 5, 1},
			vmlinux:  "struct other 4: a int 0",
			modules:  []string{"struct opts 12: x int 0, a int 8"},
		},
		{
			name:     "the size of a typedef",
			local:    "typedef size int",
			asks:     "type_size size",
			operands: []uint64{4},
			vmlinux:  "typedef size int",
			modules:  []string{"typedef size u64"},
			refused:  true,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := testbtf.Object(t, binary.LittleEndian, c.local, c.asks, c.operands...)
			o, err := core.ParseObject("o", data)
			if err != nil {
				t.Fatal(err)
			}
			_, differ, err := judge(t, withModules(t, c.vmlinux, c.modules...), Object{Object: o, Data: data})
			switch {
			case errors.Is(err, minimize.ErrProof) && c.refused:
				if !strings.Contains(err.Error(), "kernel") {
					t.Errorf("the error does not name the kernel: %v", err)
				}
			case err != nil:
				t.Error(err)
			case c.refused:
				t.Error("not refused")
			}
			for _, d := range differ {
				t.Error(d)
			}
		})
	}
}
