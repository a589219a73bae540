// SPDX-License-Identifier: Apache-2.0

package decompress

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/btfgen/btfgen/internal/limits"
)

// Budget limits the bytes that come out of all decoders and containers of one source. It is safe for concurrent use.
type Budget struct {
	left  atomic.Int64
	total int64
	ratio bool // total depends on the size on disk
}

// NewBudget returns the budget of a source of size bytes on disk: limits.UnpackedRatio times the size, but at least limits.UnpackedSmall.
func NewBudget(size int64) *Budget {
	b := newBudget(max(limits.UnpackedRatio*size, limits.UnpackedSmall))
	b.ratio = b.total > limits.UnpackedSmall
	return b
}

func newBudget(total int64) *Budget {
	b := &Budget{total: total}
	b.left.Store(total)
	return b
}

// Limit returns a reader of r that fails after n bytes.
func Limit(r io.Reader, n int64) io.Reader {
	return &metered{ctx: context.Background(), src: r, budget: newBudget(n)}
}

// Take takes n bytes. It fails if they are more than there were.
func (b *Budget) Take(n int) error {
	if b.left.Add(-int64(n)) < 0 {
		return b.exceeded()
	}
	return nil
}

func (b *Budget) exceeded() error {
	if b.ratio {
		return fmt.Errorf("%w; unpack it first if that is right", limits.ErrRatio)
	}
	return fmt.Errorf("unpacks to more than %d MiB", b.total>>20)
}

// TooLarge returns the error of what is larger than a limit in bytes.
func TooLarge(limit int64) error { return fmt.Errorf("larger than the limit of %d MiB", limit>>20) }
