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

// content is the content of a file. write can be called more than once.
type content struct {
	size  int64 // bytes, 0 if unknown
	write func(io.Writer) error
	maker string // see corpus.Kernel; only compressed files store it
}

// raw returns content in memory.
func raw(b []byte) content {
	return content{size: int64(len(b)), write: func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	}}
}

// moduleTar returns a tar of modules' BTF.
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

// worker has the memory for writing files, for one goroutine. With an encoder it compresses them.
type worker struct {
	enc *zstd.Encoder
	buf []byte
}

// newCompressor returns a worker whose files can be read with a window of 8 MiB.
func newCompressor() *worker {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedBestCompression),
		zstd.WithWindowSize(8<<20))
	if err != nil {
		panic(err) // only for wrong options
	}
	return &worker{enc: enc}
}

// ErrInput is returned for a file that would replace an input.
var ErrInput = errors.New("which is an input")

// put gives a file the content and returns the bytes written, 0 if it had the content already. It does not replace an input.
func (w *worker) put(t *tree, name string, c content) (int64, error) {
	path := t.out.Path(name)
	same, err := w.same(t.ctx, path, c)
	if same || err != nil {
		return 0, err
	}
	if t.inputs[output.Real(path)] {
		return 0, fmt.Errorf("would replace %s, %w", path, ErrInput)
	}
	var n output.Counter
	err = t.out.Put(name, func(f io.Writer) error {
		n = output.Counter{Writer: f}
		if w.enc == nil {
			return c.write(chunks{t.ctx, &n})
		}
		w.enc.ResetContentSize(&n, c.size)
		err := cmp.Or(c.write(chunks{t.ctx, w.enc}), w.enc.Close())
		if err == nil && c.maker != "" {
			_, err = n.Write(corpus.MadeFrame(c.maker))
		}
		return err
	})
	return n.N, err
}

// same reports whether a file has the content. A missing or damaged one does not.
func (w *worker) same(ctx context.Context, path string, c content) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, nil
	}
	defer f.Close()
	var r io.Reader = f
	if w.enc != nil {
		d, err := decompress.Open(ctx, decompress.Input{R: bufio.NewReader(f), Size: -1}, decompress.Zstd)
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

// chunk is the number of bytes written at once. Compressing them takes a few hundredths of a second.
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

// comparer is a writer that fails at the first byte that is not the next one of r.
type comparer struct {
	r   io.Reader
	buf []byte // a chunk, the longest write
}

func (c *comparer) Write(p []byte) (int, error) {
	have := c.buf[:len(p)]
	if _, err := io.ReadFull(c.r, have); err != nil || !bytes.Equal(have, p) {
		return 0, errors.New("differs")
	}
	return len(p), nil
}
