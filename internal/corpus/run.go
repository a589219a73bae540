// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"os"

	"github.com/btfgen/btfgen/internal/corpus/decompress"
	"github.com/btfgen/btfgen/internal/corpus/naming"
	"github.com/btfgen/btfgen/internal/corpus/skip"
)

// run is one reading of a file, which reader, extractor and assembler share.
type run struct {
	ctx     context.Context
	f       *File
	s       *scratch
	budget  *decompress.Budget
	current *part // the file on disk that is read
	errs    []error
	abort   error // ends the run; of File.Read's yield, or errFirst
}

func newRun(ctx context.Context, f *File, s *scratch) *run {
	return &run{ctx: ctx, f: f, s: s, budget: decompress.NewBudget(f.Size)}
}

func (r *run) stopped() bool { return r.abort != nil || r.ctx.Err() != nil }

// fail adds the error of a part of the file.
func (r *run) fail(err error) {
	if err == nil || r.stopped() {
		return
	}
	r.errs = skip.Append(r.errs, r.f.Path, err)
}

// counted returns a reader of src that takes its bytes from the file's budget, and ends with the context. It is used where more bytes
// can come out than go in: decoders, compressed sections, and members of a tar file, which may have holes.
func (r *run) counted(src io.Reader) io.Reader { return decompress.Metered(r.ctx, src, r.budget) }

// decompress appends what data decompresses to; anything may follow the compressed data.
func (r *run) decompress(data []byte, f decompress.Format, to *decompress.Buffer) error {
	return decompress.First(r.ctx, data, f, r.f.opts.MaxSize, r.budget, to)
}

// input is a stream to be identified and read.
type input struct {
	r      *bufio.Reader
	path   string // with "!member", for messages
	member string // path of the innermost container's member, else the file's path
	size   int64  // bytes, or -1
	depth  int
	inside bool     // a container, where other files are no error
	image  bool     // the kernel of an image
	file   *os.File // the file, if nothing is between it and r
	rel    string   // release, if something around the stream told it
	extra  naming.Extra
}

// release returns the release of a stream. One in a package's tree takes precedence over one in the content.
func (in *input) release(content string) string {
	return cmp.Or(naming.ReleaseFromTree(in.member), naming.ValidRelease(content), in.rel)
}

// errFirst ends reading after the first kernel.
var errFirst = errors.New("the first kernel is enough")
