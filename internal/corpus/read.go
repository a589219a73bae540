// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"errors"

	"github.com/btfgen/btfgen/internal/corpus/decompress"
	"github.com/btfgen/btfgen/internal/corpus/selection"
	"github.com/btfgen/btfgen/internal/corpus/skip"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/workers"
)

// Read decompresses the file and calls yield for each kernel in it that the selectors keep. After an error it continues with the next
// member or module, and returns an Error for each at the end, joined; see skip.Errors. Damaged modules are missing from their kernel. A file
// without any kernel is an error.
//
// With Options.Map, a file that changes while it is read can make yield panic; Read then returns an error that says so. Any other
// panic becomes an error of its kernel, or else of the file, that wraps a workers.Defect.
//
// If yield returns an error, or ctx is done, Read stops and returns that error.
func (f *File) Read(ctx context.Context, yield func(*Kernel) error) error {
	read := f.read
	if f.btfc != nil {
		read = f.readBTFC
	}
	if f.config != nil {
		next := yield
		yield = func(k *Kernel) error {
			k.Config = f.config
			return next(k)
		}
	}
	if f.left != nil {
		next := yield
		yield = func(k *Kernel) error {
			if f.left[k.Path] {
				return nil
			}
			return next(k)
		}
	}
	return f.caught(ctx, func(ctx context.Context, mem *decompress.Arena) error { return read(ctx, mem, yield) })
}

// First calls yield with the BTF of the first kernel in the file, whatever its key is, and reads no further: neither modules nor the end of a
// container. It makes no BTF of DWARF. Errors are those of Read.
func (f *File) First(ctx context.Context, yield func(btf []byte)) error {
	if f.btfc != nil {
		return f.Read(ctx, func(k *Kernel) error {
			yield(k.BTF)
			return nil
		})
	}
	file, opts := *f, *f.opts
	if opts.DWARF != nil {
		opts.DWARF = opts.DWARF.Disabled()
	}
	opts.Modules, opts.Extras = selection.NoModules(), false
	file.opts, file.files = &opts, f.files[:1]
	err := file.caught(ctx, func(ctx context.Context, mem *decompress.Arena) error {
		return file.assemble(ctx, mem, &assembler{first: yield})
	})
	if err == errFirst {
		return nil
	}
	return err
}

// caught calls read with memory that is given back when it returns. It returns the error of read, or one for its panic.
func (f *File) caught(ctx context.Context, read func(ctx context.Context, mem *decompress.Arena) error) (err error) {
	ctx = limits.Placed(ctx)
	mem := decompress.NewArena(ctx)
	defer mem.Release()
	if d := workers.Catch(ctx, func() { err = read(ctx, mem) }); d != nil {
		return skip.Wrap(f.Path, "", d)
	}
	return err
}

func (f *File) read(ctx context.Context, mem *decompress.Arena, yield func(*Kernel) error) error {
	return f.assemble(ctx, mem, &assembler{yield: yield})
}

// assemble reads the file with an assembler that has what to do with kernels.
func (f *File) assemble(ctx context.Context, mem *decompress.Arena, a *assembler) (err error) {
	a.reading = newReading(ctx, f, mem)
	x := &extractor{a.reading, a}
	if f.opts.Map {
		defer a.maps.guard(&err)()
	}
	defer a.dwarf.Close()
	for i := range f.files {
		if a.Stopped() {
			break
		}
		x.file(&f.files[i])
		if i == 0 && a.found == 0 && len(a.pending) == 0 && len(a.Errs) > 0 {
			break // modules need their kernel
		}
	}
	a.finish()
	if a.Abort != nil {
		return a.Abort
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if a.first == nil {
		f.opts.met.read(&f.files[0])
	}
	return errors.Join(a.Errs...)
}
