package corpus

import (
	"compress/bzip2"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/mikelolasagasti/xz"
	"github.com/pierrec/lz4/v4"
	"github.com/ulikunitz/xz/lzma"
)

// maxDict is the largest dictionary or window a decoder may allocate: what `xz -9` and `zstd
// --ultra -22 --long` need, with room to spare.
const maxDict = 128 << 20

// decoder returns what a compressed stream decompresses to. release gives the decoder back and
// must be called.
func (r *reader) decoder(in *input, k kind) (out io.Reader, release func(), err error) {
	switch k {
	case kindXZ:
		if r.useProgram(in) {
			return r.xzProgram(in)
		}
		return r.goXZ(in.r, true)
	case kindGzip:
		return r.goGzip(in.r, true)
	case kindZstd:
		return r.goZstd(in.r)
	case kindLZ4:
		return r.goLZ4(in.r)
	case kindLZMA:
		d, err := lzma.ReaderConfig{DictCap: 1 << 16}.NewReader(in.r)
		return d, func() {}, err
	}
	return bzip2.NewReader(in.r), func() {}, nil
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

func (r *reader) goZstd(src io.Reader) (io.Reader, func(), error) {
	d, err := take(&r.s.zstd, func() (*zstd.Decoder, error) {
		return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxDict))
	})
	if err != nil {
		return nil, nil, err
	}
	release := func() {
		if d.Reset(nil) == nil {
			r.s.zstd = append(r.s.zstd, d)
		}
	}
	if err := d.Reset(src); err != nil {
		release()
		return nil, nil, err
	}
	return d, release, nil
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
