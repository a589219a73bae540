// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// BenchmarkRead reads all kernels of the file that BTFGEN_PACKED names, in its order.
func BenchmarkRead(b *testing.B) {
	benchmark(b, func(f *File) func(i int, buf []byte) ([]byte, error) {
		return func(i int, buf []byte) ([]byte, error) { return f.BTF(ctx, i, buf) }
	})
}

// BenchmarkParts reads of them what a small tracer looks at.
func BenchmarkParts(b *testing.B) {
	reach := make(map[string]btf.Reach)
	for _, name := range []string{"task_struct", "mm_struct", "file", "inode", "sock", "sk_buff", "request", "pt_regs", "cgroup", "nsproxy", "linux_binprm"} {
		reach[name] = btf.ReachValue
	}
	q := NewQuery(reach)
	benchmark(b, func(f *File) func(i int, buf []byte) ([]byte, error) {
		p := f.For(q)
		return func(i int, buf []byte) ([]byte, error) {
			part, err := p.Part(ctx, i, nil, buf)
			if err != nil {
				return buf, err
			}
			return part.BTF, nil
		}
	})
}

func benchmark(b *testing.B, reader func(*File) func(i int, buf []byte) ([]byte, error)) {
	data, err := os.ReadFile(os.Getenv("BTFGEN_PACKED"))
	if err != nil {
		b.Skip("needs a file that BTFGEN_PACKED names: ", err)
	}
	b.ReportAllocs()
	for b.Loop() {
		f := open(b, data)
		read := reader(f)
		var buf []byte
		for i := range f.Entries() {
			if buf, err = read(i, buf[:0]); err != nil && !errors.Is(err, ErrWhole) {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkAlike orders kernels of as many series, which are alike, and chooses their parents. The time per kernel should not grow.
func BenchmarkAlike(b *testing.B) {
	for _, n := range []int{1000, 8000} {
		r := rand.New(rand.NewPCG(1, 2))
		all := make([]*Sketch, n)
		for i := range all {
			all[i] = new(Sketch)
			if i > 0 {
				*all[i] = *all[r.IntN(i)]
			}
			for range 3 {
				all[i][r.IntN(len(Sketch{}))] = r.Uint32()
			}
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				w, err := NewWriter(nil, b.TempDir())
				if err != nil {
					b.Fatal(err)
				}
				for _, i := range w.Order(all) {
					e := &Entry{Key: kernel.Key{ID: "d", VersionID: fmt.Sprint(i), Arch: "x86_64", Release: "1"}, Sum: Sum{byte(i), byte(i >> 8)}, Sketch: all[i]}
					e.setParent(partBTF, w.likeliest(e), w.file.entries)
					w.append(e)
				}
				w.Discard()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/kernel")
		})
	}
}

// BenchmarkWrite writes the kernels of the file that BTFGEN_PACKED names.
func BenchmarkWrite(b *testing.B) {
	data, err := os.ReadFile(os.Getenv("BTFGEN_PACKED"))
	if err != nil {
		b.Skip("needs a file that BTFGEN_PACKED names: ", err)
	}
	f := open(b, data)
	all := make([][]byte, len(f.Entries()))
	for i := range all {
		if all[i], err = f.BTF(ctx, i, nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		w, err := NewWriter(nil, b.TempDir())
		if err != nil {
			b.Fatal(err)
		}
		for i, btf := range all {
			if _, err := add(w, f.Entries()[i].Key, btf, nil); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := w.WriteTo(io.Discard); err != nil {
			b.Fatal(err)
		}
		w.Discard()
	}
}
