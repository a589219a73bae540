// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/btf/canonical"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// layoutTypes returns the types that manyLayouts and unrelatedLayouts change: 400 structs,
// and one struct that makes every layout different.
func layoutTypes() []*canonical.Type {
	types := []*canonical.Type{
		{Kind: btf.KindInt, Name: "int", Size: 4, Fields: []canonical.Field{{Lo: 32}}, Copies: 1},
		{Kind: btf.KindStruct, Name: "build", Copies: 1},
	}
	for i := range 400 {
		types = append(types, &canonical.Type{
			Kind: btf.KindStruct, Name: fmt.Sprintf("struct_%d", i), Size: 16, Copies: 1,
			Fields: []canonical.Field{{Name: "first"}, {Name: fmt.Sprintf("member_%d", i%50), Lo: 64}}, Refs: []int{0, 0},
		})
	}
	return types
}

// grow moves the last member of a struct.
func grow(o *canonical.Type, by int) {
	o.Size += uint32(8 * by)
	o.Fields[1].Lo += uint32(64 * by)
}

// manyLayouts returns n kernels with n different BTFs in 20 series. From one kernel of a
// series to the next up to three structs grow, and at every 25th kernel a third of them.
func manyLayouts(t testing.TB, n int) []archive.Kernel {
	t.Helper()
	const series = 20
	kernels := make([]archive.Kernel, 0, n)
	for s := range series {
		r := rand.New(rand.NewPCG(uint64(s), 0))
		types := layoutTypes()
		for i := range (n + series - 1 - s) / series {
			grown := 1 + r.IntN(3)
			if i%25 == 0 {
				grown = len(types) / 3
			}
			for range grown {
				grow(types[2+r.IntN(len(types)-2)], 1)
			}
			types[1].Size = uint32(1 + s*n + i)
			kernels = append(kernels, archive.Kernel{
				Key: kernel.Key{ID: "debian", VersionID: fmt.Sprint(s), Arch: "x86_64", Release: fmt.Sprintf("6.%d.%d", i/25, i%25)},
				BTF: encoded(t, types, binary.LittleEndian),
			})
		}
	}
	return kernels
}

// unrelatedLayouts returns n kernels with n different BTFs. Nearly all structs have another
// size in each.
func unrelatedLayouts(t testing.TB, n int) []archive.Kernel {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	var kernels []archive.Kernel
	for i := range n {
		types := layoutTypes()
		types[1].Size = uint32(1 + i)
		for _, o := range types[2:] {
			grow(o, r.IntN(20))
		}
		kernels = append(kernels, archive.Kernel{
			Key: kernel.Key{ID: "debian", VersionID: "12", Arch: "x86_64", Release: fmt.Sprintf("6.%d.%d", i/25, i%25)},
			BTF: encoded(t, types, binary.LittleEndian),
		})
	}
	return kernels
}

// BenchmarkWriteLayouts shows how the time of Write grows with the number of BTFs.
func BenchmarkWriteLayouts(b *testing.B) {
	for _, bm := range []struct {
		name string
		make func(testing.TB, int) []archive.Kernel
	}{{"series", manyLayouts}, {"unrelated", unrelatedLayouts}} {
		for _, n := range []int{1000, 2000, 4000} {
			b.Run(fmt.Sprintf("%s/%d", bm.name, n), func(b *testing.B) {
				kernels := bm.make(b, n)
				b.ReportAllocs()
				for b.Loop() {
					b.ReportMetric(float64(len(mustWrite(b, kernels))), "bytes")
				}
			})
		}
	}
}

// BenchmarkWriteShared writes many kernels that share the memory of one BTF.
func BenchmarkWriteShared(b *testing.B) {
	types := layoutTypes()
	for i := range 20000 {
		types = append(types, &canonical.Type{
			Kind: btf.KindStruct, Name: fmt.Sprintf("large_struct_%d", i), Size: 4, Copies: 1, Fields: []canonical.Field{{Name: "a"}}, Refs: []int{0},
		})
	}
	data := encoded(b, types, binary.LittleEndian)
	kernels := make([]archive.Kernel, 100_000)
	for i := range kernels {
		kernels[i] = archive.Kernel{Key: kernel.Key{ID: "debian", VersionID: "12", Arch: "x86_64", Release: fmt.Sprintf("6.%d.%d", i/100, i%100)}, BTF: data}
	}
	b.Logf("%d kernels share %d bytes", len(kernels), len(data))
	for b.Loop() {
		mustWrite(b, kernels)
	}
}
