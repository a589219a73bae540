// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"cmp"
	"context"
	"errors"

	"github.com/btfgen/btfgen/internal/corpus/bootable"
	"github.com/btfgen/btfgen/internal/corpus/decompress"
	"github.com/btfgen/btfgen/internal/corpus/naming"
	"github.com/btfgen/btfgen/internal/corpus/skip"
	"github.com/btfgen/btfgen/internal/corpus/unpack"
)

// Bootable reads the kernel in the file, a package or an image, with what it needs to boot. It takes the modules with the given names and
// their dependencies. A file without an image for a machine that can be booted is an error, and so is one with several kernels. With
// Options.Extras, it finds a configuration in a file of its own. It returns ctx's error if ctx ends it.
func (f *File) Bootable(ctx context.Context, modules []string) (*bootable.System, error) {
	if f.btfc != nil {
		return nil, skip.Wrap(f.Path, "", errors.New("holds BTF and no kernel images"))
	}
	return bootable.Read(f.Path, modules, func(taker func(*unpack.Reading) unpack.Taker) error {
		return f.caught(ctx, func(ctx context.Context, mem *decompress.Arena) error {
			r := newReading(ctx, f, mem)
			to := taker(r.Reading)
			for i := range f.files {
				if p := &f.files[i]; p.extra != naming.Symbols {
					r.readFile(p, to)
				}
			}
			return cmp.Or(ctx.Err(), errors.Join(r.Errs...))
		})
	})
}
