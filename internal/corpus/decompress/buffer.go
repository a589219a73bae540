// SPDX-License-Identifier: Apache-2.0

package decompress

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/btfgen/btfgen/internal/limits"
)

// Keep is the number of bytes that a buffer or decoder may keep between two files: the 27 MB of CentOS 8's BTF fit. What a whole vmlinux
// needed is freed; decompressing it costs more than allocating it again.
const Keep = 40 << 20

// Budget limits the bytes that come out of all decoders and containers of one source. It is safe for concurrent use.
type Budget struct {
	left  atomic.Int64
	total int64
}

// NewBudget returns the budget of a source of size bytes on disk, of which no part may be larger than limit: limits.UnpackedParts times the
// limit and limits.UnpackedRatio times the size.
func NewBudget(limit, size int64) *Budget {
	b := &Budget{total: limits.UnpackedParts*limit + limits.UnpackedRatio*size}
	b.left.Store(b.total)
	return b
}

// Limit returns a reader of r that fails after n bytes.
func Limit(r io.Reader, n int64) io.Reader {
	b := &Budget{total: n}
	b.left.Store(n)
	return &metered{ctx: context.Background(), r: r, budget: b}
}

// Take takes n bytes. It fails if they are more than there were.
func (b *Budget) Take(n int) error {
	if b.left.Add(-int64(n)) < 0 {
		return b.exceeded()
	}
	return nil
}

func (b *Budget) exceeded() error {
	return fmt.Errorf("unpacks to more than %d MiB", b.total>>20)
}

// TooLarge returns the error of what is larger than a limit in bytes.
func TooLarge(limit int64) error { return fmt.Errorf("larger than the limit of %d MiB", limit>>20) }

// Buffer is memory that grows and is used again.
type Buffer struct{ B []byte }

// Trim empties the buffer, and gives its memory back if it is more than Keep.
func (b *Buffer) Trim() {
	if cap(b.B) > Keep {
		b.B = nil
	}
	b.B = b.B[:0]
}

// Append appends what r has, at most limit bytes, and returns how many; after an error it has
// appended nothing. hint is the expected number, or negative; it is only believed as far as a small
// buffer goes, so memory stays in proportion to what really arrives.
func (b *Buffer) Append(r io.Reader, hint, limit int64) (int, error) {
	if hint > limit {
		return 0, TooLarge(limit)
	}
	start := len(b.B)
	room := min(max(hint, 4096), limits.Believed)
	if room > limits.Believed/8 {
		room = limits.Believed // a kernel; the next may be larger, and memory that is not touched costs nothing
	}
	b.Grow(int(room) + 1)
	n, err := b.appendPrefix(r, hint, limit)
	if err != nil {
		b.B = b.B[:start]
		return 0, err
	}
	return n, nil
}

// appendPrefix appends what r has before its end or an error, and returns how many bytes that is.
func (b *Buffer) appendPrefix(r io.Reader, hint, limit int64) (int, error) {
	start := len(b.B)
	for {
		if len(b.B) == cap(b.B) {
			have := len(b.B) - start
			b.Grow(max(have/2, int(min(hint+1-int64(have), 3*int64(have))), 4096))
		}
		n, err := r.Read(b.B[len(b.B):cap(b.B)])
		b.B = b.B[:len(b.B)+n]
		switch {
		case int64(len(b.B)-start) > limit:
			return 0, TooLarge(limit)
		case err == io.EOF:
			return len(b.B) - start, nil
		case err != nil:
			return len(b.B) - start, err
		}
	}
}

// Grow makes room for n more bytes.
func (b *Buffer) Grow(n int) {
	if cap(b.B)-len(b.B) >= n {
		return
	}
	nb := make([]byte, len(b.B), max(len(b.B)+n, cap(b.B)+cap(b.B)/2))
	copy(nb, b.B)
	b.B = nb
}

// Head keeps the first kilobyte that is written to it, such as the messages of a program.
type Head struct{ buf bytes.Buffer }

func (h *Head) Write(p []byte) (int, error) {
	if room := 1024 - h.buf.Len(); room > 0 {
		h.buf.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

func (h *Head) String() string { return h.buf.String() }
