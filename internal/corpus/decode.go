package corpus

import (
	"compress/bzip2"
	"errors"
	"io"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/mikelolasagasti/xz"
	"github.com/pierrec/lz4/v4"
	"github.com/ulikunitz/xz/lzma"
)

// maxDict is the largest dictionary or window a decoder may allocate: what `zstd --ultra -22`
// needs, twice that of `xz -9`.
const maxDict = 128 << 20

// decoder returns what a compressed stream decompresses to. release gives the decoder back and
// must be called.
func (r *reader) decoder(in *input, k kind) (out io.Reader, release func(), err error) {
	switch k {
	case kindXZ:
		if r.useProgram(in) {
			return r.xzProgram(in, "-dc")
		}
		return r.goXZ(in.r, true)
	case kindGzip:
		return r.goGzip(in.r, true)
	case kindZstd:
		return r.goZstd(in)
	case kindLZ4:
		return r.goLZ4(in.r)
	case kindLZMA:
		d, err := lzma.ReaderConfig{DictCap: maxDict}.NewReader(in.r)
		return d, func() {}, err
	}
	return bzip2.NewReader(in.r), func() {}, nil
}

// firstStream is decoder for data that is followed by something else.
func (r *reader) firstStream(in *input, k kind) (io.Reader, func(), error) {
	switch {
	case k == kindXZ && r.useProgram(in):
		return r.xzProgram(in, "-dc", "--single-stream")
	case k == kindXZ:
		return r.goXZ(in.r, false)
	case k == kindGzip:
		return r.goGzip(in.r, false)
	}
	return r.decoder(in, k)
}

// trailing says whether err, from a decoder that cannot be told to stop at the end of the first
// stream, just means that something else follows.
func trailing(k kind, err error) bool {
	switch k {
	case kindZstd:
		return errors.Is(err, zstd.ErrMagicMismatch)
	case kindBzip2:
		var bad bzip2.StructuralError
		return errors.As(err, &bad) && strings.Contains(string(bad), "bad magic value")
	}
	return k == kindLZ4 // the legacy format has no end
}

func (r *reader) goXZ(src io.Reader, multi bool) (io.Reader, func(), error) {
	d, err := take(&r.s.xz, func() (*xz.Reader, error) { return xz.NewReader(nil, maxDict) })
	if err != nil {
		return nil, nil, err
	}
	release := func() { r.s.xz = append(r.s.xz, d) }
	if err := d.Reset(src); err != nil {
		release()
		return nil, nil, err
	}
	d.Multistream(multi)
	return d, release, nil
}

func (r *reader) goGzip(src io.Reader, multi bool) (io.Reader, func(), error) {
	d, err := take(&r.s.gzip, func() (*gzip.Reader, error) { return new(gzip.Reader), nil })
	if err != nil {
		return nil, nil, err
	}
	release := func() { r.s.gzip = append(r.s.gzip, d) }
	if err := d.Reset(src); err != nil {
		release()
		return nil, nil, err
	}
	d.Multistream(multi)
	return d, release, nil
}

func (r *reader) goZstd(in *input) (io.Reader, func(), error) {
	d, err := take(&r.s.zstd, func() (*zstd.Decoder, error) {
		return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxDict))
	})
	if err != nil {
		return nil, nil, err
	}
	var h zstd.Header
	head, _ := in.r.Peek(zstd.HeaderMaxSize)
	large := h.Decode(head) == nil && h.WindowSize > keep
	release := func() {
		if !large && d.Reset(nil) == nil { // it never lets go of its window
			r.s.zstd = append(r.s.zstd, d)
		}
	}
	if err := d.Reset(in.r); err != nil {
		release()
		return nil, nil, err
	}
	return d, release, nil
}

// plausibleZstd says whether the size that a frame announces is in proportion to data.
func plausibleZstd(data []byte) bool {
	var h zstd.Header
	return h.Decode(data) == nil && (!h.HasFCS || h.FrameContentSize <= 64*uint64(len(data)))
}

// zstdAll appends the frame that data begins with. Decoded at once, a frame needs no window besides its
// output; kernels are compressed with windows of 128 MB.
func (r *reader) zstdAll(data []byte, to *buffer) error {
	limit := r.f.opts.MaxSize
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(limit)),
		zstd.WithDecoderMaxWindow(min(maxDict, uint64(limit))))
	if err != nil {
		return err
	}
	defer d.Close()
	out, err := d.DecodeAll(data, to.b[:0])
	if err == nil || len(out) > 0 && trailing(kindZstd, err) {
		to.b = out
		r.budget.Add(-int64(len(out)))
		return nil
	}
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		return errTooLarge{limit}
	}
	return err
}

func (r *reader) goLZ4(src io.Reader) (io.Reader, func(), error) {
	d, _ := take(&r.s.lz4, func() (*lz4.Reader, error) { return lz4.NewReader(nil), nil })
	d.Reset(src)
	return d, func() { r.s.lz4 = append(r.s.lz4, d) }, nil
}

// take returns an idle decoder, or a new one.
func take[T any](idle *[]T, create func() (T, error)) (T, error) {
	if n := len(*idle); n > 0 {
		d := (*idle)[n-1]
		*idle = (*idle)[:n-1]
		return d, nil
	}
	return create()
}
