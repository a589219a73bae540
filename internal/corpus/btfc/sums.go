// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"context"
	"io"
)

// Check checks the sums of the chunks of kernels, and of those that these are encoded against. It unpacks none.
func (f *File) Check(ctx context.Context, kernels []int) error {
	seen := make(map[chunkID]bool)
	for _, i := range kernels {
		for p := range numParts {
			if !f.entry(i).has(p) {
				continue
			}
			for id := (chunkID{p, i}); id.kernel >= 0 && !seen[id] && ctx.Err() == nil; id = f.parent(id) {
				seen[id] = true
				e := f.entry(id.kernel)
				for _, at := range e.Chunks[id.part].frames() {
					if err := at.copy(io.Discard, f.reader); err != nil {
						return e.wrap(ctx, at, err)
					}
				}
			}
		}
	}
	return ctx.Err()
}
