// SPDX-License-Identifier: Apache-2.0

package relolog

import (
	"context"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/pkg/relo"
)

// ErrByteOrder is returned for an object and a kernel of different byte orders:
// the object cannot be loaded there.
var ErrByteOrder = core.ErrByteOrder

// Run resolves every relocation of an object against a kernel as libbpf would,
// and returns the log. A bad relocation does not end it: its entry says why a
// loader would give up, and the others are resolved as if it were absent. Run
// needs no privilege and no running kernel, and can be called from many
// goroutines on the same object and target. The error is [ErrByteOrder],
// [ErrTooLarge] or the context's.
func Run(ctx context.Context, o *Object, t *Target) (*relo.Log, error) {
	return core.Run(ctx, o.o, t.Internal())
}
