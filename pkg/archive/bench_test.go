// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/btf/canonical"
	"github.com/btfgen/btfgen/internal/testing/testminimized"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// manyKernels returns n copies of the real kernels under other names. In every fourth
// some structs have grown.
func manyKernels(t testing.TB, n int) []archive.Kernel {
	t.Helper()
	real := testminimized.Kernels(t)
	kernels := make([]archive.Kernel, n)
	for i := range kernels {
		k := real[i%len(real)]
		k.Key.VersionID = fmt.Sprintf("%s.%d", k.Key.VersionID, i%7)
		k.Key.Release = fmt.Sprintf("%s.%d", k.Key.Release, i/4)
		if i%4 == 3 {
			k.BTF = grown(t, k.BTF, i)
		}
		kernels[i] = k
	}
	return kernels
}

// grown returns a BTF in which some members have moved, depending on seed.
func grown(t testing.TB, data []byte, seed int) []byte {
	t.Helper()
	btf, types := typesOf(t, data)
	for i, o := range types {
		if o.Kind.IsComposite() && len(o.Fields) > 0 && (i*7+seed)%5 == 0 && !o.Flag {
			by := uint32(8 * (1 + seed%40))
			for j := seed % len(o.Fields); j < len(o.Fields); j++ {
				o.Fields[j].Lo += 8 * by
			}
			o.Size += by
		}
	}
	return encoded(t, types, btf.Order())
}

// typesOf returns the types of a BTF as Write encodes them.
func typesOf(t testing.TB, data []byte) (*btf.BTF, []*canonical.Type) {
	t.Helper()
	b, err := btf.New(data, nil)
	if err != nil {
		t.Fatal(err)
	}
	return b, archive.TypesOf(b)
}

var thousand struct {
	sync.Once
	data []byte
	key  kernel.Key
}

func thousandKernels(t testing.TB) ([]byte, kernel.Key) {
	t.Helper()
	thousand.Do(func() {
		kernels := manyKernels(t, 1000)
		thousand.data, thousand.key = mustWrite(t, kernels), kernels[803].Key
	})
	return thousand.data, thousand.key
}

// BenchmarkOpenAndGet measures the start of a tracer.
func BenchmarkOpenAndGet(b *testing.B) {
	data, key := thousandKernels(b)
	a := mustOpen(b, data)
	b.Logf("%d kernels, %d layouts, %d bytes", a.Len(), a.Layouts(), len(data))
	b.ReportAllocs()
	for b.Loop() {
		a, err := archive.Open(data)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := a.BTF(a.Lookup(key, 0).Key); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	data, _ := thousandKernels(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := archive.Open(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	kernels := manyKernels(b, 1000)
	b.ReportAllocs()
	for b.Loop() {
		mustWrite(b, kernels)
	}
}

// TestMemoryOfThousand opens an archive of a thousand kernels and reads one BTF, with few
// megabytes.
func TestMemoryOfThousand(t *testing.T) {
	data, key := thousandKernels(t)
	mustOpen(t, data) // the decoder stays
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	a := mustOpen(t, data)
	if _, err := a.BTF(a.Lookup(key, 0).Key); err != nil {
		t.Error(err)
	}
	runtime.ReadMemStats(&after)
	got := after.TotalAlloc - before.TotalAlloc
	if t.Logf("%d bytes for %d of archive", got, len(data)); got > 8<<20 {
		t.Errorf("%d bytes", got)
	}
}
