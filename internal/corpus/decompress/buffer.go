// SPDX-License-Identifier: Apache-2.0

package decompress

import (
	"io"
	"sync"

	"github.com/btfgen/btfgen/internal/limits"
)

// Keep is the number of bytes that a buffer or decoder may keep between two files: the 27 MB of CentOS 8's BTF fit. What a whole vmlinux
// needed is freed; decompressing it costs more than allocating it again.
const Keep = 40 << 20

// Buffer is memory that grows and is used again.
type Buffer struct {
	B    []byte
	task *limits.Task // holds the memory; may be nil
}

// Use makes the memory that of a task, until Trim.
func (b *Buffer) Use(t *limits.Task) error {
	if err := t.Take(int64(cap(b.B))); err != nil {
		return err
	}
	b.task = t
	return nil
}

// Trim empties the buffer, and gives its memory back if it is more than Keep.
func (b *Buffer) Trim() {
	b.task.Give(int64(cap(b.B)))
	b.task = nil
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
	if err := b.Grow(int(room) + 1); err != nil {
		return 0, err
	}
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
			want := limit + 1 - int64(have)
			if hint >= int64(have) {
				want = hint + 1 - int64(have)
			}
			// Four times as much: each copy is garbage for a while, and memory that is not touched costs nothing.
			if err := b.Grow(int(max(min(want, 3*int64(have)), 4096))); err != nil {
				return 0, err
			}
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

// Grow makes room for n more bytes. It fails if the context of the buffer's task ends while it waits for memory.
func (b *Buffer) Grow(n int) error {
	if cap(b.B)-len(b.B) >= n {
		return nil
	}
	old, size := cap(b.B), max(len(b.B)+n, cap(b.B)+cap(b.B)/2)
	var nb []byte
	if old == 0 {
		if s, _ := spare.Get().(*[]byte); s != nil && cap(*s) >= size {
			nb, size = (*s)[:0], cap(*s)
		}
	}
	if err := b.task.Take(int64(size)); err != nil {
		return err
	}
	if nb == nil {
		nb = make([]byte, 0, size)
	}
	nb = append(nb, b.B...)
	b.B = nb
	b.task.Give(int64(old))
	return nil
}

// appendWith appends up to room bytes with a function that allocates memory for them, as append does.
func (b *Buffer) appendWith(room int64, add func([]byte) ([]byte, error)) error {
	old := int64(cap(b.B))
	if err := b.task.Take(old + room); err != nil {
		return err
	}
	out, err := add(b.B)
	if err == nil {
		b.B = out
	}
	b.task.Give(old + room - (int64(cap(b.B)) - old))
	return err
}

// Set replaces the content by memory that was allocated elsewhere.
func (b *Buffer) Set(content []byte) {
	b.task.Give(int64(cap(b.B)) - int64(cap(content)))
	b.B = content
}

// Leave leaves the content to the caller, and goes on with other memory. The content counts as memory until give is called, once. Then
// buffers use it again.
func (b *Buffer) Leave() (give func()) {
	content, done := b.B, b.task.Leave(int64(cap(b.B)))
	b.B = nil
	return func() {
		if cap(content) <= keepSpare {
			spare.Put(&content)
		}
		done()
	}
}

// spare has memory of up to keepSpare bytes that others had.
var spare sync.Pool // of *[]byte

const keepSpare = 16 << 20

// Add appends data.
func (b *Buffer) Add(data []byte) error {
	err := b.Grow(len(data))
	if err == nil {
		b.B = append(b.B, data...)
	}
	return err
}
