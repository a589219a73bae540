// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"errors"

	"github.com/btfgen/btfgen/internal/corpus/decompress"
	"github.com/btfgen/btfgen/internal/corpus/unpack"
)

// reading is one pass over a file, which an extractor and its assembler share.
type reading struct {
	*unpack.Reading
	source  *File
	mem     *decompress.Arena // has the BTF of pending kernels and modules that is not mapped
	maps    mappings
	current *diskFile // the file on disk that is read
}

func newReading(ctx context.Context, f *File, mem *decompress.Arena) *reading {
	return &reading{Reading: unpack.NewReading(ctx, f.Path, f.Size, f.opts.MaxSize, f.opts.XZ), source: f, mem: mem}
}

// readFile passes the content of one readFile on disk to a taker.
func (r *reading) readFile(p *diskFile, to unpack.Taker) {
	r.current = p
	unpack.NewReader(r.Reading, to).File(p.Path, p.Size, p.extra)
}

// errFirst ends reading after the first kernel.
var errFirst = errors.New("the first kernel is enough")
