// SPDX-License-Identifier: Apache-2.0

package decompress

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/btfgen/btfgen/internal/limits"
)

// random returns n bytes that cannot be made smaller, the same ones each time.
func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

// failing is a reader that gives no end.
type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("failed") }

func TestArenaRead(t *testing.T) {
	a := NewArena(t.Context())
	defer a.Release()
	before, err := a.Copy([]byte("before"))
	if err != nil {
		t.Fatal(err)
	}
	for _, hint := range []int64{-1, 0, 3, 100, 1 << 40} {
		got, err := a.Read(bytes.NewReader(random(100)), hint, 100)
		if hint > 100 {
			if err == nil || got != nil {
				t.Errorf("hint %d: %d, %v", hint, len(got), err)
			}
			continue
		}
		if err != nil || !bytes.Equal(got, random(100)) {
			t.Errorf("hint %d: %d bytes, %v", hint, len(got), err)
		}
	}
	end := cap(a.rest)
	if _, err := a.Read(bytes.NewReader(random(101)), -1, 100); err == nil {
		t.Error("no error above the limit")
	}
	if _, err := a.Read(io.MultiReader(bytes.NewReader(random(9)), failing{}), -1, 100); err == nil {
		t.Error("no error of the reader")
	}
	if string(before) != "before" || cap(a.rest) != end {
		t.Errorf("%q after errors, which took %d bytes", before, end-cap(a.rest))
	}
}

// TestArena reads, copies and appends much of many sizes, and checks that nothing is moved or changed, that the memory counts, and that
// other arenas use it again.
func TestArena(t *testing.T) {
	m := limits.NewMemory(1 << 40)
	ctx := m.Within(t.Context())
	a := NewArena(ctx)
	fill := func() {
		var want, got [][]byte
		sum := int64(0)
		for i := range 200 {
			size := 1 + i*i*37%(manyBlock/40)
			if i%50 == 49 {
				size = i * manyBlock / 50
			}
			data := bytes.Repeat([]byte{byte(i)}, size)
			var part []byte
			var err error
			switch i % 3 {
			case 0:
				part, err = a.Read(bytes.NewReader(data), int64(size)-int64(i%2), int64(size))
			case 1:
				part, err = a.Copy(data)
			case 2:
				part, err = a.Append(int64(size), func(b []byte) ([]byte, error) { return append(b, data...), nil })
			}
			if err != nil {
				t.Fatal(err)
			}
			if cap(part) != len(part) {
				t.Fatalf("part %d has room for %d bytes more", i, cap(part)-len(part))
			}
			want, got, sum = append(want, data), append(got, part), sum+int64(size)
			if dropped, err := a.Copy(make([]byte, i)); err != nil {
				t.Fatal(err)
			} else if i > 0 {
				before := cap(a.rest)
				a.Drop(part) // is not the last
				if a.Drop(dropped); cap(a.rest) != before+i {
					t.Fatalf("part %d: %d bytes of room, want %d", i, cap(a.rest), before+i)
				}
			}
		}
		for i := range want {
			if !bytes.Equal(got[i], want[i]) {
				t.Fatalf("part %d has changed", i)
			}
		}
		held := int64(0)
		for _, b := range a.blocks {
			held += int64(cap(b))
		}
		if a.Held() != held || sum < held/2 || sum > held {
			t.Errorf("%d bytes count for %d in blocks of %d", a.Held(), sum, held)
		}
	}
	fill()
	if err := a.Hold(1000); err != nil {
		t.Fatal(err)
	}
	held, moved := a.Held(), a.Move()
	if moved.Held() != held || a.Held() != 0 || a.blocks != nil {
		t.Errorf("%d of %d bytes moved, %d left", moved.Held(), held, a.Held())
	}
	fill()
	if m.Held() != held+a.Held() {
		t.Errorf("%d bytes count, want %d", m.Held(), held+a.Held())
	}
	moved.Release()
	a.Release()
	if m.Held() != 0 {
		t.Errorf("%d bytes count at the end", m.Held())
	}
}

// TestArenaAgain checks that an arena takes the memory that another one gave back, and not what is in use.
func TestArenaAgain(t *testing.T) {
	var used Arena
	part, err := used.Copy(random(5 << 20))
	if err != nil {
		t.Fatal(err)
	}
	n := allocated(func() {
		for range 20 {
			var a Arena
			if err := a.Grow(5 << 20); err != nil {
				t.Fatal(err)
			}
			clear(a.rest[:cap(a.rest)])
			a.Release()
		}
	})
	if !bytes.Equal(part, random(5<<20)) {
		t.Error("memory in use was taken")
	}
	if n > 10*8<<20 { // with the race detector a pool drops some of what it is given
		t.Errorf("%d bytes allocated", n)
	}
}
