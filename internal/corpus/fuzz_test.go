// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bytes"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/corpus/decompress"
	"github.com/btfgen/btfgen/internal/corpus/find"
	"github.com/btfgen/btfgen/internal/corpus/sniff"
	"github.com/btfgen/btfgen/internal/corpus/unpack"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
)

// FuzzRead reads any bytes as a source. Whatever they are, there is a kernel with a valid header or
// an error of one line, and the memory stays within the limits.
func FuzzRead(f *testing.F) {
	raceflag.SkipSerial(f)
	for _, sm := range samples() {
		if len(sm.data) < 4096 {
			f.Add(sm.data)
		}
	}
	f.Add(bzImage(compress("lz4legacy", noise(100))))
	f.Add(tarOf(member{"vmlinux", blobLE}, member{"nf.btf", splitLE}))
	const limit = 1 << 20
	f.Fuzz(func(t *testing.T, data []byte) {
		file := &File{Path: "f", Size: int64(len(data)), files: []diskFile{{File: &find.File{Path: "f", Size: int64(len(data))}}}, opts: &Options{MaxSize: limit, Extras: true}}
		kernels, mem := 0, decompress.NewArena(t.Context())
		defer mem.Release()
		a := &assembler{reading: newReading(t.Context(), file, mem), yield: func(it *Kernel) error {
			kernels++
			if split, err := sniff.IsSplit(it.BTF); err != nil || split {
				t.Errorf("yielded: split %v, %v", split, err)
			}
			for _, m := range it.Modules {
				if split, err := sniff.IsSplit(m.BTF); err != nil || !split {
					t.Errorf("yielded module: split %v, %v", split, err)
				}
			}
			return nil
		}}
		a.Budget, a.current = decompress.NewBudget(0), &file.files[0]
		r := unpack.NewReader(a.Reading, &extractor{a.reading, a})
		r.Stream(bytes.NewReader(data), unpack.Stream{Path: "f", Member: "f", Size: int64(len(data))})
		a.finish()
		if kernels == 0 && len(r.Errs) == 0 && sniff.Of(data[:min(len(data), sniff.Len)]) == sniff.BTF {
			t.Error("neither kernel nor error")
		}
		for _, err := range r.Errs {
			if text := err.Error(); !strings.HasPrefix(text, "f") || strings.Contains(text, "\n") {
				t.Errorf("error %q", text)
			}
		}
		if n := mem.Held(); n > 4*limits.UnpackedSmall {
			t.Errorf("%d bytes held", n)
		}
	})
}
