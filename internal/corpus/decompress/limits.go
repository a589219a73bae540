// SPDX-License-Identifier: Apache-2.0

package decompress

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/btfgen/btfgen/internal/limits"
)

// Keep is how much memory a buffer or decoder may hold between two files, in bytes: that of CentOS 8's
// 27 MB BTF. What a whole vmlinux needed is given back; decompressing one costs more than getting the
// memory again.
const Keep = 40 << 20

// Budget is how many bytes may come out of all decoders and containers of one source together. It is
// safe for concurrent use.
type Budget struct {
	left  atomic.Int64
	total int64
}

// NewBudget returns the budget of a source of size bytes, as it lies on disk, of which no part may be
// larger than limit: limits.UnpackedParts times the limit and limits.UnpackedRatio times the size.
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

// TooLarge is the error of what is larger than a limit in bytes.
func TooLarge(limit int64) error { return errTooLarge{limit} }

// errTooLarge is what reading more than the limit gives.
type errTooLarge struct{ limit int64 }

func (e errTooLarge) Error() string {
	return fmt.Sprintf("larger than the limit of %d MiB", e.limit>>20)
}
