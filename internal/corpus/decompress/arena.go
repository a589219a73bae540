// SPDX-License-Identifier: Apache-2.0

package decompress

import (
	"context"
	"io"
	"math/bits"
	"sync"

	"github.com/btfgen/btfgen/internal/limits"
)

// Arena is the memory of one reading: a kernel with its modules, say, or an image. The slices that it returns are valid until
// Release, which gives all memory back at once. The memory counts against a limit, see [NewArena]; that of a zero Arena does not. An Arena is
// for one goroutine at a time.
type Arena struct {
	ctx    context.Context
	task   *limits.Task // holds the memory; nil if it does not count
	blocks [][]byte     // all memory, as blocks with length 0
	rest   []byte       // free end of the last block, with length 0
}

const (
	minBlock  = 64 << 10 // capacity of the smallest block
	manyBlock = 4 << 20  // capacity of the blocks of an arena with much that is small, such as modules
	maxIdle   = 40 << 20 // capacity of the largest block that is kept: the 27 MB of CentOS 8's BTF fit
)

// NewArena returns an Arena whose memory counts against the limit of ctx, see [limits.Memory.Within], or else against limits.Unpacked. Its
// methods wait for memory, and fail if ctx is done. The caller must call Release. All arenas of one reading have the same context, which is
// one of [limits.Placed].
func NewArena(ctx context.Context) *Arena {
	return &Arena{ctx: ctx, task: limits.Unpacked.In(ctx).Open(ctx)}
}

// Other returns another arena of the same reading.
func (a *Arena) Other() *Arena { return NewArena(a.ctx) }

// Release gives all memory back. The arena must not be used afterwards.
func (a *Arena) Release() {
	for _, b := range a.blocks {
		keepBlock(b)
	}
	a.blocks, a.rest = nil, nil
	if a.task != nil {
		a.task.Close()
	}
}

// Move returns an arena with everything that a has, and leaves a empty.
func (a *Arena) Move() *Arena {
	moved := *a
	*a = *a.Other()
	return &moved
}

// Held returns the bytes that count.
func (a *Arena) Held() int64 { return a.task.Held() }

// Hold counts n bytes that are allocated elsewhere.
func (a *Arena) Hold(n int64) error { return a.task.Take(n) }

// Read returns what r has, at most limit bytes. hint is the expected number, or negative. It is only believed up to limits.Believed, so memory
// stays in proportion to what really arrives.
func (a *Arena) Read(r io.Reader, hint, limit int64) ([]byte, error) {
	if hint > limit {
		return nil, TooLarge(limit)
	}
	data, err := a.readPrefix(r, hint, limit)
	if err != nil {
		return nil, err
	}
	return a.take(data), nil
}

// readPrefix returns what r has before its end or an error. Unless the caller takes it, the arena uses its memory again.
func (a *Arena) readPrefix(r io.Reader, hint, limit int64) ([]byte, error) {
	err := a.Grow(min(max(hint+1, 4096), limits.Believed))
	if err != nil {
		return nil, err
	}
	data := a.rest
	for {
		if have := int64(len(data)); have == int64(cap(data)) {
			// Four times as much: each copy is garbage for a while, and memory that is not touched costs nothing.
			want := min(limit+1-have, 3*have)
			if hint >= have {
				want = hint + 1 - have
			}
			if data, err = a.extend(data, max(want, 4096)); err != nil {
				return nil, err
			}
		}
		n, err := r.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case int64(len(data)) > limit:
			return nil, TooLarge(limit)
		case err == io.EOF:
			return data, nil
		case err != nil:
			return data, err
		}
	}
}

// Copy returns a copy of data.
func (a *Arena) Copy(data []byte) ([]byte, error) {
	b, err := a.extend(a.rest, int64(len(data)))
	if err != nil {
		return nil, err
	}
	return a.take(append(b, data...)), nil
}

// Append returns what add appends to an empty slice. add may allocate up to most bytes to make the slice larger.
func (a *Arena) Append(most int64, add func([]byte) ([]byte, error)) ([]byte, error) {
	if err := a.task.Take(most); err != nil {
		return nil, err
	}
	out, err := add(a.rest)
	if err != nil {
		a.task.Give(most)
		return nil, err
	}
	if cap(out) > 0 && (cap(a.rest) == 0 || &out[:1][0] != &a.rest[:1][0]) { // add has allocated memory
		most -= int64(cap(out))
		a.push(out[:0])
	}
	a.task.Give(most)
	return a.take(out), nil
}

// Drop takes data back if that is the last slice that a returned.
func (a *Arena) Drop(data []byte) {
	if len(a.blocks) == 0 || len(data) == 0 {
		return
	}
	b := a.blocks[len(a.blocks)-1]
	if at := cap(b) - cap(a.rest) - len(data); at >= 0 && &b[:at+1][at] == &data[0] {
		a.rest = b[at:at]
	}
}

// Grow makes room for n bytes. The next slice does not move while it grows to them.
func (a *Arena) Grow(n int64) error {
	if n > limits.Believed/8 && n > int64(cap(a.rest)) {
		n = max(n, limits.Believed) // a kernel; the next one may be larger, and memory that is not touched costs nothing
	}
	_, err := a.extend(a.rest, n)
	return err
}

// take removes data from the beginning of a.rest, and returns it.
func (a *Arena) take(data []byte) []byte {
	a.rest = data[len(data):]
	return data[:len(data):len(data)]
}

// extend returns data, which is at the beginning of a.rest, with room for n bytes more. If necessary it moves data to another block.
func (a *Arena) extend(data []byte, n int64) ([]byte, error) {
	if int64(cap(data)-len(data)) >= n {
		return data, nil
	}
	size := int64(0)
	for _, b := range a.blocks {
		size += int64(cap(b))
	}
	size = max(int64(len(data))+n, min(size, manyBlock), minBlock)
	if err := a.task.Take(size); err != nil {
		return nil, err
	}
	b := newBlock(size)
	// The block may be larger than size; Give with a negative size counts the rest.
	a.task.Give(size - int64(cap(b)))
	data = append(b, data...)
	a.push(b)
	return data, nil
}

// push adds an empty block, which takes the place of the last one if that is empty, too.
func (a *Arena) push(b []byte) {
	if last := len(a.blocks) - 1; last >= 0 && cap(a.blocks[last]) == cap(a.rest) {
		a.task.Give(int64(cap(a.rest)))
		keepBlock(a.blocks[last])
		a.blocks = a.blocks[:last]
	}
	a.blocks, a.rest = append(a.blocks, b), b
}

// idle has blocks that no arena has, by the logarithm of their capacity, rounded down.
var idle [bits.UintSize]sync.Pool // pools of *[]byte

// newBlock returns an empty block of at least size bytes.
func newBlock(size int64) []byte {
	for _, log := range []int{bits.Len64(uint64(size - 1)), bits.Len64(uint64(size)) - 1} {
		b, _ := idle[log].Get().(*[]byte)
		switch {
		case b != nil && int64(cap(*b)) >= size:
			return *b
		case b != nil:
			idle[log].Put(b)
		}
	}
	return make([]byte, 0, size)
}

// keepBlock lets other arenas have a block. Decompressing what needs more than maxIdle costs more than allocating it again.
func keepBlock(b []byte) {
	if n := cap(b); n >= minBlock && n <= maxIdle {
		idle[bits.Len(uint(n))-1].Put(&b)
	}
}
