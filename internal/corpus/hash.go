// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"crypto/sha256"
	"io"
	"os"

	"github.com/btfgen/btfgen/internal/corpus/decompress"
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
	_, err = io.Copy(h, decompress.Until(ctx, r))
	h.Sum(sum[:0])
	return sum, err
}
