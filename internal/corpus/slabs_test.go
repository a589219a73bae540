// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bytes"
	"testing"

	"github.com/btfgen/btfgen/internal/corpus/decompress"
	"github.com/btfgen/btfgen/internal/limits"
)

// TestSlabs adds modules of many sizes, and checks that none is moved or changed, that the memory counts, and that it is used again.
func TestSlabs(t *testing.T) {
	m := limits.NewMemory(1 << 40)
	task := m.Open(t.Context())
	defer task.Close()
	var s slabs
	if err := s.use(task); err != nil {
		t.Fatal(err)
	}
	fill := func() (first *byte) {
		var want, got [][]byte
		sum := 0
		for i := range 200 {
			size := 1 + i*i*37%(slabSize/40)
			if i == 150 {
				size = slabSize + 1
			}
			data := bytes.Repeat([]byte{byte(i)}, size)
			kept, err := s.add(data)
			if err != nil {
				t.Fatal(err)
			}
			if cap(kept) != len(kept) {
				t.Fatalf("module %d has room for %d bytes more", i, cap(kept)-len(kept))
			}
			want, got, sum = append(want, data), append(got, kept), sum+size
		}
		for i := range want {
			if !bytes.Equal(got[i], want[i]) {
				t.Fatalf("module %d has changed", i)
			}
		}
		if s.len() != sum || s.size < int64(sum) || task.Held() != s.size || int64(sum) < s.size/2 {
			t.Errorf("%d bytes of %d, want %d; %d count", s.len(), s.size, sum, task.Held())
		}
		return &got[0][0]
	}
	first := fill()
	size := s.size
	s.reset()
	if fill() != first || s.size != size {
		t.Errorf("other memory after reset: %d bytes instead of %d", s.size, size)
	}
	give := s.leave()
	if s.len() != 0 || task.Held() != 0 {
		t.Errorf("%d bytes left, %d count", s.len(), task.Held())
	}
	if fill() == first {
		t.Error("memory was used again that another owns")
	}
	give()
	s.trim()
	if task.Held() != 0 || s.size > decompress.Keep {
		t.Errorf("%d bytes count, %d kept", task.Held(), s.size)
	}
}
