// SPDX-License-Identifier: Apache-2.0

// Package decompress reads compressed data within limits.
//
// Nothing here believes what a file says of itself: dictionaries and windows are limited to limits.Dictionary,
// buffers grow with the bytes that arrive, and a Budget bounds what all decoders of one source give.
//
// # Which decoders
//
// Decompression is what a run over many kernels spends its time on, and xz most of all. Of the two
// decoders in Go, github.com/mikelolasagasti/xz is taken: on a .btf.tar.xz of 5 MB it needs 77 ms and 8
// allocations where github.com/ulikunitz/xz needs 115 ms and 595,000, it can be used again, it
// limits the dictionary, and it knows the branch filters that kernel images are compressed with. The xz
// program needs 64 ms, which its process and pipe take back. For programs, which packages of kernels are full of, it
// takes less than half of the time, so it reads these where it may; see XZProgram.
// ulikunitz/xz reads .lzma, which the other cannot.
package decompress

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"context"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/mikelolasagasti/xz"
	"github.com/pierrec/lz4/v4"
	"github.com/ulikunitz/xz/lzma"

	"github.com/btfgen/btfgen/internal/limits"
)

// Open returns a reader of the decompressed data of all streams in r, of size bytes or -1, one after the other. What the xz program reads ends
// with ctx. The reader must be closed; Close never fails.
func Open(ctx context.Context, r *bufio.Reader, size int64, f Format, xz *XZProgram) (io.ReadCloser, error) {
	return open(ctx, r, size, f, xz, true)
}

// open is Open, or, if all is not set, for data that is followed by something else; see trailing.
func open(ctx context.Context, r *bufio.Reader, size int64, f Format, program *XZProgram, all bool) (io.ReadCloser, error) {
	switch f {
	case XZ:
		if program.takes(size) {
			return program.open(ctx, r, all)
		}
		return reuse[*xz.Reader](&xzs, r, all)
	case Gzip:
		return reuse[*gzip.Reader](&gzips, r, all)
	case Zstd:
		return goZstd(r)
	case Bzip2:
		return io.NopCloser(bzip2.NewReader(r)), nil
	case LZ4:
		return io.NopCloser(lz4.NewReader(r)), nil
	case LZMA:
		d, err := lzma.ReaderConfig{DictCap: limits.Dictionary}.NewReader(r)
		if err != nil {
			return nil, err
		}
		return io.NopCloser(d), nil
	}
	return nil, errors.New("not compressed")
}

// stream is a decoder that release gives back to its pool.
type stream struct {
	io.Reader
	release func()
}

func (s stream) Close() error {
	s.release()
	return nil
}

// First returns what the compressed data at the beginning of data unpacks to, at most limit bytes, which it takes from the budget.
func First(ctx context.Context, data []byte, f Format, xz *XZProgram, limit int64, budget *Budget, to *Arena) ([]byte, error) {
	if f == Zstd && plausibleZstd(data) {
		return zstdFrame(data, limit, budget, to)
	}
	d, err := open(ctx, bufio.NewReader(bytes.NewReader(data)), int64(len(data)), f, xz, false)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	m := &metered{ctx: ctx, src: d, budget: budget}
	out, err := to.readPrefix(m, -1, limit)
	if err != nil && !(len(out) > 0 && !m.ended && trailing(f, err)) {
		return nil, err
	}
	return to.take(out), nil
}

// Until returns a reader of r that fails when its context is done.
func Until(ctx context.Context, r io.Reader) io.Reader { return until{ctx, r} }

type until struct {
	ctx context.Context
	src io.Reader
}

func (u until) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.src.Read(p)
}

// Metered returns a reader of r that takes its bytes from a budget, until its context is done.
func Metered(ctx context.Context, r io.Reader, budget *Budget) io.Reader {
	return &metered{ctx: ctx, src: r, budget: budget}
}

type metered struct {
	ctx    context.Context
	src    io.Reader
	budget *Budget
	ended  bool // the budget or the context ended the reading, not r
}

func (m *metered) Read(p []byte) (int, error) {
	if err := m.ctx.Err(); err != nil {
		m.ended = true
		return 0, err
	}
	n, err := m.src.Read(p)
	if over := m.budget.Take(n); over != nil {
		m.ended, err = true, over
	}
	return n, err
}

// trailing reports whether err, from a decoder that cannot stop at the end of the first stream, only means that something follows.
func trailing(f Format, err error) bool {
	switch f {
	case Zstd:
		return errors.Is(err, zstd.ErrMagicMismatch)
	case Bzip2:
		var bad bzip2.StructuralError
		return errors.As(err, &bad) && strings.Contains(string(bad), "bad magic value")
	}
	return f == LZ4 // the legacy format has no end
}

// Idle decoders of the formats that need much memory.
var (
	xzs = sync.Pool{New: func() any {
		d, _ := xz.NewReader(nil, limits.Dictionary) // it fails only on a stream
		return d
	}}
	gzips = sync.Pool{New: func() any { return new(gzip.Reader) }}
	zstds sync.Pool
)

// reuse returns a decoder of a pool that reads src: all its streams, or only the first one.
func reuse[D interface {
	io.Reader
	Reset(io.Reader) error
	Multistream(bool)
}](idle *sync.Pool, src io.Reader, all bool) (io.ReadCloser, error) {
	d := idle.Get().(D)
	if err := d.Reset(src); err != nil {
		return nil, err
	}
	d.Multistream(all)
	return stream{d, func() { idle.Put(d) }}, nil
}

func goZstd(src *bufio.Reader) (io.ReadCloser, error) {
	d, _ := zstds.Get().(*zstd.Decoder)
	if d == nil {
		var err error
		if d, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(limits.Dictionary)); err != nil {
			return nil, err
		}
	}
	var h zstd.Header
	head, _ := src.Peek(zstd.HeaderMaxSize)
	large := h.Decode(head) == nil && h.WindowSize > maxIdle
	if err := d.Reset(src); err != nil {
		return nil, err
	}
	return stream{d, func() {
		if !large && d.Reset(nil) == nil { // it never lets go of its window
			zstds.Put(d)
		}
	}}, nil
}

// plausibleZstd reports whether the size in a frame's header is in proportion to data.
func plausibleZstd(data []byte) bool {
	var h zstd.Header
	return h.Decode(data) == nil && (!h.HasFCS || h.FrameContentSize <= 64*uint64(len(data)))
}

// zstdFrame decodes the first frame of data. Decoding it at once needs no window, only the output; kernels are compressed with windows of
// 128 MB.
func zstdFrame(data []byte, limit int64, budget *Budget, to *Arena) ([]byte, error) {
	tooLarge := TooLarge(limit)
	if left := budget.left.Load(); left < limit {
		limit, tooLarge = max(left, 0), budget.exceeded()
	}
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(max(limit, 1))),
		zstd.WithDecoderMaxWindow(limits.Dictionary))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	var h zstd.Header
	// plausibleZstd has decoded the same header without an error.
	_ = h.Decode(data)
	room := limit
	if h.HasFCS {
		room = min(limit, int64(h.FrameContentSize))
	}
	out, err := to.Append(room, func(b []byte) ([]byte, error) {
		out, err := d.DecodeAll(data, b)
		if len(out) > 0 && trailing(Zstd, err) {
			err = nil
		}
		return out, err
	})
	if err == nil {
		return out, budget.Take(len(out))
	}
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) ||
		errors.Is(err, zstd.ErrWindowSizeExceeded) && h.WindowSize <= limits.Dictionary { // more than limit
		return nil, tooLarge
	}
	return nil, err
}
