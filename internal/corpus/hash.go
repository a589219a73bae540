// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"crypto/sha256"
	"io"
	"os"

	"github.com/btfgen/btfgen/internal/corpus/skip"
)

func hashFile(ctx context.Context, path string) (sum [sha256.Size]byte, err error) {
	r, err := os.Open(path)
	if err != nil {
		return sum, skip.Wrap(path, "", err)
	}
	defer r.Close()
	sum, err = hash(ctx, r)
	return sum, skip.Wrap(path, "", err)
}

// hash returns the SHA-256 of what r has.
func hash(ctx context.Context, r io.Reader) (sum [sha256.Size]byte, err error) {
	h := sha256.New()
	_, err = io.Copy(h, ctxReader{ctx, r})
	h.Sum(sum[:0])
	return sum, err
}

// ctxReader stops reading when its context is done.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (c ctxReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
