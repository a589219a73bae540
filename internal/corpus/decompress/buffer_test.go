// SPDX-License-Identifier: Apache-2.0

package decompress

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
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

func TestBuffer(t *testing.T) {
	var b Buffer
	b.B = append(b.B, "before"...)
	for _, hint := range []int64{-1, 0, 3, 100, 1 << 40} {
		n, err := b.Append(bytes.NewReader(random(100)), hint, 100)
		if hint > 100 {
			if err == nil || n != 0 {
				t.Errorf("hint %d: %d, %v", hint, n, err)
			}
			continue
		}
		if n != 100 || err != nil || !bytes.Equal(b.B[6:], random(100)) {
			t.Errorf("hint %d: %d bytes, %v", hint, n, err)
		}
		b.B = b.B[:6]
	}
	if _, err := b.Append(bytes.NewReader(random(101)), -1, 100); err == nil {
		t.Error("no error above the limit")
	}
	if _, err := b.Append(io.MultiReader(bytes.NewReader(random(9)), failing{}), -1, 100); err == nil {
		t.Error("no error of the reader")
	}
	if string(b.B) != "before" {
		t.Errorf("buffer is %q after errors", b.B)
	}
}
