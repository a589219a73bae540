// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"errors"

	"github.com/btfgen/btfgen/internal/corpus/decompress"
	"github.com/btfgen/btfgen/internal/corpus/unpack"
)

// run is one reading of a file, which an extractor and its assembler share.
type run struct {
	*unpack.Run
	f       *File
	mem     *decompress.Arena // has the BTF of pending kernels and modules that is not mapped
	maps    mappings
	current *diskFile // the file on disk that is read
}

func newRun(ctx context.Context, f *File, mem *decompress.Arena) *run {
	return &run{Run: unpack.NewRun(ctx, f.Path, f.Size, f.opts.MaxSize, f.opts.XZ), f: f, mem: mem}
}

// file passes the content of one file on disk to a taker.
func (r *run) file(p *diskFile, to unpack.Taker) {
	r.current = p
	unpack.NewReader(r.Run, to).File(p.Path, p.Size, p.extra)
}

// errFirst ends reading after the first kernel.
var errFirst = errors.New("the first kernel is enough")
