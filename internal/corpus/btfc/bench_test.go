// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"errors"
	"io"
	"os"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
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
