package corpus

import (
	"bufio"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/mikelolasagasti/xz"
	"github.com/pierrec/lz4/v4"

	"github.com/btfgen/btfgen/pkg/relolog"
)

// Scratch is the memory that reading kernels takes. One Scratch serves one File.Read at a time and
// is meant to be used for many: its buffers and decoders stay, so that a run allocates next to
// nothing per kernel. The zero value is ready. There is nothing to close.
type Scratch struct {
	btf    buffer // the BTF of the kernel being put together, with its modules
	images stack[buffer]
	inputs stack[bufio.Reader]

	zstd []*zstd.Decoder // idle decoders; they nest as the content does
	gzip []*gzip.Reader
	xz   []*xz.Reader
	lz4  []*lz4.Reader

	xzMemory *os.File // what the xz program writes to; closed when it is collected
	xzUsed   int64    // how much memory it has

	maps    []mapping // of the file that is read
	pending []blob
	taken   []*blob // of pending, the modules of one kernel
	modules []relolog.Module
	paths   []string // of modules
}

// keep is how much memory a buffer may hold between two files: that of CentOS 8's 27 MB BTF. What a
// whole vmlinux needed is given back; decompressing one costs more than getting the memory again.
const keep = 40 << 20

// trim gives memory back that is above keep.
func (s *Scratch) trim() {
	s.btf.trim()
	for i := range s.images.items {
		s.images.items[i].trim()
	}
	if s.xzUsed > keep {
		forget(s.xzMemory, s.xzUsed)
		s.xzUsed = 0
	}
	clear(s.pending[:cap(s.pending)])
	clear(s.taken[:cap(s.taken)])
	clear(s.modules[:cap(s.modules)])
	clear(s.paths[:cap(s.paths)])
	s.pending = s.pending[:0]
}

// stack hands out reusable values that are needed in a nested way.
type stack[T any] struct {
	items []*T
	depth int
}

func (s *stack[T]) push(create func() *T) *T {
	if s.depth == len(s.items) {
		s.items = append(s.items, create())
	}
	s.depth++
	return s.items[s.depth-1]
}

func (s *stack[T]) pop() { s.depth-- }

// buffer is memory that grows and is used again.
type buffer struct{ b []byte }

func (b *buffer) trim() {
	if cap(b.b) > keep {
		b.b = nil
	}
	b.b = b.b[:0]
}

// errTooLarge is what reading more than the limit gives.
type errTooLarge struct{ limit int64 }

func (e errTooLarge) Error() string {
	return fmt.Sprintf("larger than the limit of %d MiB", e.limit>>20)
}

// believed is how many bytes are made room for because somebody says that they will come.
const believed = 8 << 20

// readFrom appends what r has, at most limit bytes, and returns how many. hint is the expected
// number, or negative; it is only believed as far as a small buffer goes, so memory stays in
// proportion to what really arrives.
func (b *buffer) readFrom(r io.Reader, hint, limit int64) (int, error) {
	if hint > limit {
		return 0, errTooLarge{limit}
	}
	start := len(b.b)
	room := min(max(hint, 4096), believed)
	if room > believed/8 {
		room = believed // a kernel; the next may be larger, and memory that is not touched costs nothing
	}
	b.grow(int(room) + 1)
	n, err := b.readPrefix(r, hint, limit)
	if err != nil {
		b.b = b.b[:start]
		return 0, err
	}
	return n, nil
}

// readPrefix appends what r has before its end or an error, and returns how many bytes that is.
func (b *buffer) readPrefix(r io.Reader, hint, limit int64) (int, error) {
	start := len(b.b)
	for {
		if len(b.b) == cap(b.b) {
			have := len(b.b) - start
			b.grow(max(have/2, int(min(hint+1-int64(have), 3*int64(have))), 4096))
		}
		n, err := r.Read(b.b[len(b.b):cap(b.b)])
		b.b = b.b[:len(b.b)+n]
		switch {
		case int64(len(b.b)-start) > limit:
			return 0, errTooLarge{limit}
		case err == io.EOF:
			return len(b.b) - start, nil
		case err != nil:
			return len(b.b) - start, err
		}
	}
}

// grow makes room for n more bytes.
func (b *buffer) grow(n int) {
	if cap(b.b)-len(b.b) >= n {
		return
	}
	nb := make([]byte, len(b.b), max(len(b.b)+n, cap(b.b)+cap(b.b)/2))
	copy(nb, b.b)
	b.b = nb
}
