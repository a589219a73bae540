// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"io"
	"runtime"
	"testing"

	"github.com/btfgen/btfgen/pkg/relo"
)

// TestMemory prints logs with many records of few decisions. What is kept of a record, on all kernels together, is much smaller than an entry.
func TestMemory(t *testing.T) {
	const records, most = 100_000, 100
	kept := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	p := NewPrinter(io.Discard, Options{})
	before := kept()
	for _, kernel := range []string{"a", "b", "c"} {
		decided := copies(3, kernel, 16)
		err := p.Print("o", kernel, func(yield func(*relo.Entry) bool) {
			for i := range records {
				e := decided
				e.Index, e.Insn = i, 2*i
				if !yield(&e) {
					return
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := int64(kept()-before) / records; n > most {
		t.Errorf("%d bytes are kept of a record, want at most %d", n, most)
	}
	if p.Shown[relo.Resolved] != 3*records {
		t.Errorf("%d entries", p.Shown[relo.Resolved])
	}
	runtime.KeepAlive(p)
}
