package btfc

import (
	"os"
	"testing"
)

// BenchmarkRead reads all kernels of the file that BTFGEN_PACKED names, in its order.
func BenchmarkRead(b *testing.B) {
	data, err := os.ReadFile(os.Getenv("BTFGEN_PACKED"))
	if err != nil {
		b.Skip("BTFGEN_PACKED: ", err)
	}
	b.ReportAllocs()
	for b.Loop() {
		f := open(b, data)
		var s Scratch
		var buf []byte
		for i := range f.Entries() {
			if buf, err = f.BTF(ctx, &s, i, buf[:0]); err != nil {
				b.Fatal(err)
			}
		}
	}
}
