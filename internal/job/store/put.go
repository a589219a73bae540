// SPDX-License-Identifier: Apache-2.0

package store

import (
	"archive/tar"
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/decompress"
	"github.com/btfgen/btfgen/internal/output"
)

// content is what a file holds.
type content struct {
	size  int64 // bytes, or 0 if that is not known
	write func(io.Writer) error
	maker string // see corpus.Kernel; compressed files tell
}

// raw is content that is in memory.
func raw(b []byte) content {
	return content{size: int64(len(b)), write: func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	}}
}

// moduleTar is a tar of modules' BTF.
func moduleTar(release string, modules []core.Module) content {
	return content{write: func(w io.Writer) error {
		tw := tar.NewWriter(w)
		for _, m := range modules {
			h := tar.Header{Typeflag: tar.TypeReg, Name: release + "/" + m.Name + ".btf", Mode: 0o644, Size: int64(len(m.BTF))}
			if err := tw.WriteHeader(&h); err != nil {
				return fmt.Errorf("%s: %w", h.Name, err)
			}
			if _, err := tw.Write(m.BTF); err != nil {
				return err
			}
		}
		return tw.Close()
	}}
}

// worker has the memory that writing takes, for one goroutine. With an encoder, files are
// compressed.
type worker struct {
	enc *zstd.Encoder
	dec decompress.Scratch
	buf []byte
}

// maxWindow is what readers of the compressed files need, in bytes.
const maxWindow = 8 << 20

func newCompressor() (*worker, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedBestCompression),
		zstd.WithWindowSize(maxWindow))
	return &worker{enc: enc}, err
}

// ErrInput is the cause where a kernel is left out because its file is one that is read.
var ErrInput = errors.New("which is an input")

// put makes a file hold the content and returns the bytes written, 0 if it did already. It
// does not replace a file that is an input.
func (w *worker) put(t *tree, name string, c content) (int64, error) {
	path := t.out.Path(name)
	same, err := w.same(t.ctx, path, c)
	if same || err != nil {
		return 0, err
	}
	if t.inputs[output.Real(path)] {
		return 0, fmt.Errorf("would replace %s, %w", path, ErrInput)
	}
	var n counter
	err = t.out.Put(name, func(f io.Writer) error {
		n = counter{w: f}
		return w.encode(t.ctx, &n, c)
	})
	return n.n, err
}

// counter counts the bytes written.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

func (w *worker) encode(ctx context.Context, f io.Writer, c content) error {
	if w.enc == nil {
		return c.write(chunks{ctx, f})
	}
	w.enc.ResetContentSize(f, c.size)
	err := cmp.Or(c.write(chunks{ctx, w.enc}), w.enc.Close())
	if err == nil && c.maker != "" {
		_, err = f.Write(corpus.MadeFrame(c.maker))
	}
	return err
}

// same says whether a file holds the content. One that is damaged does not.
func (w *worker) same(ctx context.Context, path string, c content) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, nil // put will say what is wrong
	}
	defer f.Close()
	var r io.Reader = f
	if w.enc != nil {
		d, err := w.dec.Open(ctx, decompress.Input{R: bufio.NewReader(f), Size: -1}, decompress.Zstd)
		if err != nil {
			return false, nil
		}
		defer d.Close()
		r = d
	}
	if w.buf == nil {
		w.buf = make([]byte, chunk)
	}
	err = c.write(chunks{ctx, &comparer{r, w.buf}})
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err != nil {
		return false, nil
	}
	n, err := r.Read(w.buf)
	return n == 0 && err == io.EOF, nil
}

// chunk is how much is written at once, in bytes: what the encoder needs a few hundredths of a
// second for.
const chunk = 512 << 10

// chunks writes in chunks until its context is done.
type chunks struct {
	ctx context.Context
	w   io.Writer
}

func (c chunks) Write(p []byte) (n int, err error) {
	for n < len(p) {
		if err := c.ctx.Err(); err != nil {
			return n, err
		}
		m, err := c.w.Write(p[n:min(n+chunk, len(p))])
		if n += m; err != nil {
			return n, err
		}
	}
	return n, nil
}

var errDiffers = errors.New("differs")

// comparer fails at the first byte written that is not the next one of r.
type comparer struct {
	r   io.Reader
	buf []byte // a chunk
}

func (c *comparer) Write(p []byte) (int, error) {
	have := c.buf[:len(p)] // chunks writes no more at once
	if _, err := io.ReadFull(c.r, have); err != nil || !bytes.Equal(have, p) {
		return 0, errDiffers
	}
	return len(p), nil
}
