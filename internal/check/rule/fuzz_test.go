// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/flow"
	"github.com/btfgen/btfgen/internal/check/interp"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/testing/testinput"
)

// maxFuzzed bounds the bytes of an object that FuzzParse reads: twice the largest
// seed. To make a larger one smaller byte by byte would take the fuzzer minutes.
const maxFuzzed = 64 << 10

// FuzzParse feeds damaged objects to the parser and executes whatever comes
// out of it, with every instruction that has a relocation poisoned.
func FuzzParse(f *testing.F) {
	paths, err := filepath.Glob(testinput.Path(f, "testdata", "bpf", "*.bpfel.o"))
	if err != nil || len(paths) == 0 {
		f.Fatal("no objects", err)
	}
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > maxFuzzed {
			return
		}
		o, err := Parse(t.Context(), "fuzz", data)
		if (o == nil) == (err == nil) {
			t.Fatal("neither an object nor an error, or both")
		}
		if err != nil {
			return
		}
		for i := range min(len(o.Programs), 16) {
			execute(o, i)
		}
	})
}

func execute(o *Object, i int) {
	interp.Explore(context.Background(), o.Code, &o.Programs[i], &interp.Input{
		Features: interp.Rodata | interp.Partial | interp.StImm | interp.Globals | interp.Features(1-i%2)*interp.LazyGlobals,
		Record:   func(int) (uint64, bool) { return 0, false },
		Ksym:     func(*bpfobj.Extern) interp.Number { return interp.Number{V: uint64(i) % 2} },
		Kconfig:  func(*bpfobj.Extern) interp.Number { return interp.Number{Unknown: math.MaxUint64} },
		Settable: func(string) bool { return false },
	})
	o.external(i, nil)
	flow.Accesses(o.Code, &o.Programs[i], nil, limits.NewMeter(context.Background(), limits.AccessSteps, "instructions"))
}
