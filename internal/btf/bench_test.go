// SPDX-License-Identifier: Apache-2.0

package btf_test

import (
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
)

// BenchmarkFull measures the passes over a whole vmlinux, and for comparison reading its
// bytes once.
func BenchmarkFull(b *testing.B) {
	data := kernels(b)["../../testdata/vmlinux/debian/12/x86_64/6.1.0-47-amd64.btf.zst"]
	if data == nil {
		b.Fatal("kernel is not in testdata")
	}
	var v btf.BTF
	b.Run("read", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		sum := 0
		for b.Loop() {
			for _, c := range data {
				sum += int(c)
			}
		}
		_ = sum
	})
	b.Run("load", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			if err := v.Load(b.Context(), data, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	names := btf.NewNames([]string{"task_struct", "sock", "file", "sk_buff", "inode"})
	var found [][]btf.TypeID
	b.Run("find", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var err error
			if found, err = v.Find(b.Context(), names, 5, found); err != nil {
				b.Fatal(err)
			}
		}
	})
}
