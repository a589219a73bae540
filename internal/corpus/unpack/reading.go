// SPDX-License-Identifier: Apache-2.0

// Package unpack unwraps compressions, archives and packages, one in another, and passes their content to a Taker.
package unpack

import (
	"bufio"
	"cmp"
	"context"
	"io"
	"os"

	"github.com/btfgen/btfgen/internal/corpus/decompress"
	"github.com/btfgen/btfgen/internal/corpus/naming"
	"github.com/btfgen/btfgen/internal/corpus/skip"
)

// Reading is one pass over a file, with its limits and errors.
type Reading struct {
	Ctx    context.Context
	Budget *decompress.Budget // limits the bytes that come out of the file
	Errs   []error            // errors of parts of the file
	Abort  error              // ends the reading

	// Names has other names for members of the file, if it is not nil. Then each of these members is read once for each name, and no others.
	Names map[string][]string

	XZ      *decompress.XZProgram
	MaxSize int64 // bytes of one BTF, ELF file or kernel image

	path string
}

// NewReading returns the Reading of a file of size bytes.
func NewReading(ctx context.Context, path string, size, maxSize int64, xz *decompress.XZProgram) *Reading {
	return &Reading{Ctx: ctx, Budget: decompress.NewBudget(size), MaxSize: maxSize, XZ: xz, path: path}
}

// Stopped reports whether to read no further.
func (r *Reading) Stopped() bool { return r.Abort != nil || r.Ctx.Err() != nil }

// Fail adds the error of a part of the file.
func (r *Reading) Fail(err error) {
	if err == nil || r.Stopped() {
		return
	}
	r.Errs = skip.Append(r.Errs, r.path, err)
}

// Counted returns a reader of src that takes its bytes from the file's budget, and ends with the context. It is used where more bytes
// can come out than go in: decoders, compressed sections, and members of a tar file, which may have holes.
func (r *Reading) Counted(src io.Reader) io.Reader { return decompress.Metered(r.Ctx, src, r.Budget) }

// Decompress returns what data decompresses to, at most MaxSize bytes; anything may follow the compressed data.
func (r *Reading) Decompress(data []byte, f decompress.Format, to *decompress.Arena) ([]byte, error) {
	return decompress.First(r.Ctx, data, f, r.XZ, r.MaxSize, r.Budget, to)
}

// Stream is a stream to be identified and read.
type Stream struct {
	*bufio.Reader
	Path   string   // with "!member", for messages
	Member string   // path of the innermost container's member, else the file's path
	Size   int64    // bytes, or -1
	Inside bool     // a container, where other files are no error
	Image  bool     // the kernel of an image
	File   *os.File // the file, if nothing is between it and Reader
	Rel    string   // release, if something around the stream told it
	Extra  naming.Extra

	depth int
}

// Release returns the release of a stream. One in a package's tree takes precedence over one in the content.
func (in *Stream) Release(content string) string {
	return cmp.Or(naming.ReleaseFromTree(in.Member), naming.ValidRelease(content), in.Rel)
}
