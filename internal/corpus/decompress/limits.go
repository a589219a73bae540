// SPDX-License-Identifier: Apache-2.0

package decompress

import (
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
func TooLarge(limit int64) error { return errTooLarge{limit} }

type errTooLarge struct{ limit int64 }

func (e errTooLarge) Error() string {
	return fmt.Sprintf("larger than the limit of %d MiB", e.limit>>20)
}
