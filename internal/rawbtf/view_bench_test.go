package rawbtf

import (
	"os"
	"testing"
)

func BenchmarkLoad(b *testing.B) {
	data, err := os.ReadFile("/sys/kernel/btf/vmlinux")
	if err != nil {
		b.Skip(err)
	}
	names := NewNames([]string{"task_struct", "sock", "file", "sk_buff", "inode"})
	var v BTF
	var out [][]TypeID
	b.Run("load", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			if err := v.Load(data, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("find", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			out = v.Find(names, 5, out)
		}
	})
	b.Run("read", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		s := 0
		for b.Loop() {
			for _, c := range data {
				s += int(c)
			}
		}
		_ = s
	})
}
