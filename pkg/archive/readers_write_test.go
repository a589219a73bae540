// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/readers"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// TestReadersThousand opens an archive of a thousand kernels with the readers, with less than a
// megabyte, and compares it with the Go reader.
func TestReadersThousand(t *testing.T) {
	slow.Skip(t)
	raceflag.SkipSerial(t)
	data, _ := thousandKernels(t)
	readers.Each(t, readers.Compiled, func(t *testing.T, c *readers.Reader) {
		if !c.Compare(t, data) {
			t.Fatal("not opened")
		}
		a := c.Open(t, data)
		t.Logf("compared %d kernels in %d bytes: opening takes %d bytes, %d of which are kept; taking a BTF out takes %d",
			len(a.Kernels), len(data), a.Most, a.Kept, a.Taking)
		if a.Most > 1<<20 || a.Kept+a.Taking > 1<<20 {
			t.Error("takes more than 1 MiB")
		}
	})
}

// TestReadersOdd compares the readers on shapes that no kernel has: cycles of anonymous types,
// copies, and all kinds.
func TestReadersOdd(t *testing.T) {
	raceflag.SkipSerial(t)
	readers.Each(t, readers.Compiled, func(t *testing.T, c *readers.Reader) {
		for i := range slow.Some(60) {
			r := rand.New(rand.NewPCG(uint64(i), 1))
			var kernels []archive.Kernel
			for j := range 1 + i%5 {
				data := make([]byte, 400)
				for k := range data {
					data[k] = byte(r.Uint32())
				}
				types, _ := randomTypes(data)
				order := [...]binary.ByteOrder{binary.LittleEndian, binary.BigEndian}[(i+j)%2]
				key := kernel.Key{ID: "odd", Arch: "x86_64", Release: fmt.Sprint(j)}
				kernels = append(kernels, archive.Kernel{Key: key, BTF: encoded(t, types, order)})
			}
			if !c.Compare(t, mustWrite(t, kernels)) {
				t.Errorf("%d: not opened", i)
			}
		}
	})
}

// FuzzCWrite compares the readers on the archives of FuzzWrite.
func FuzzCWrite(f *testing.F) {
	for seed := range 16 {
		r := rand.New(rand.NewPCG(uint64(seed), 2))
		b := make([]byte, 200*seed)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		f.Add(b)
	}
	c := readers.Start(f, readers.C)
	f.Fuzz(func(t *testing.T, data []byte) {
		var kernels []archive.Kernel
		for i := 0; len(data) > 0 && i < 8; i++ {
			types, rest := randomTypes(data)
			data = rest
			key := kernel.Key{ID: "a", Arch: "x86_64", Release: fmt.Sprint(i)}
			kernels = append(kernels, archive.Kernel{Key: key, BTF: encoded(t, types, binary.LittleEndian)})
		}
		if !c.Compare(t, mustWrite(t, kernels)) {
			t.Error("not opened")
		}
	})
}
