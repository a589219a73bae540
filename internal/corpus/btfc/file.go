// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/internal/limits"
)

// File is a corpus in one file, open for reading. It is safe for concurrent use, and caches the kernels read last.
type File struct {
	r       io.ReaderAt
	entries []Entry
	end     int64 // of the chunks
	states  states
	known   recent[*lines]       // extras
	modules recent[*moduleState] // kernels with these

	// find returns the entry of a kernel where that may not be written yet.
	find func(ctx context.Context, i int) (*Entry, error)
}

// entry returns the entry of a kernel whose chunk is there.
func (f *File) entry(ctx context.Context, i int) (*Entry, error) {
	if f.find != nil {
		return f.find(ctx, i)
	}
	return &f.entries[i], nil
}

// tail is how much of a file's end is read at once.
const tail = 64 << 10

var errEnd = errors.New("does not end as a corpus does: it may have been cut short")

// Open reads the index of a file of size bytes. r is read at whenever a kernel is asked for.
func Open(r io.ReaderAt, size int64) (*File, error) {
	n := min(size, tail)
	buf := make([]byte, n)
	if err := readFull(r, buf, size-n); err != nil {
		return nil, err
	}
	if n < int64(headerLen+footerLen) || string(buf[n-int64(len(endMark)):]) != endMark {
		return nil, errEnd
	}
	var head [headerLen]byte
	if err := readFull(r, head[:], 0); err != nil {
		return nil, err
	}
	if string(head[:len(Magic)]) != Magic {
		return nil, errors.New("not a corpus")
	}
	if head[len(Magic)] != version {
		return nil, fmt.Errorf("version %d of the format, want %d", head[len(Magic)], version)
	}
	length := binary.LittleEndian.Uint64(buf[n-int64(footerLen):])
	if length > uint64(size)-uint64(headerLen+footerLen) {
		return nil, errEnd
	}
	end := size - int64(footerLen) - int64(length)
	frame := buf[:n-int64(footerLen)]
	if int64(length) <= int64(len(frame)) {
		frame = frame[int64(len(frame))-int64(length):]
	} else {
		if length > limits.CorpusIndex {
			return nil, fmt.Errorf("index: %d bytes, more than %d", length, limits.CorpusIndex)
		}
		frame = make([]byte, length)
		if err := readFull(r, frame, end); err != nil {
			return nil, err
		}
	}
	index, err := unpack(frame, -1, limits.CorpusIndex, nil)
	if err != nil {
		return nil, fmt.Errorf("index: %w", err)
	}
	entries, err := parseIndex(index, end)
	if err != nil {
		return nil, err
	}
	return newFile(r, entries, end), nil
}

func newFile(r io.ReaderAt, entries []Entry, end int64) *File {
	f := &File{r: r, entries: entries, end: end}
	f.known.keep, f.modules.keep = keepLines, keepModules
	f.states = states{file: f, of: make(map[int]*pending)}
	return f
}

// Entries returns the kernels in the order in which they were added. They must not be changed.
func (f *File) Entries() []Entry { return f.entries }

func readFull(r io.ReaderAt, b []byte, off int64) error {
	if n, err := r.ReadAt(b, off); n < len(b) {
		if err == io.EOF {
			return btfa.ErrCut
		}
		return err
	}
	return nil
}

var decoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(1<<31), zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxWindow(limits.Dictionary))
})

// smallFrame is up to how many bytes a frame need not say its size, which those of fewer than 256 bytes do not.
const smallFrame = 1 << 10

// smallFrames is up to how many bytes a frame may have, whatever it compresses to.
const smallFrames = 1 << 20

// unpack appends the contents of one zstd frame to out: size bytes or, if that is -1, up to limit. The frame must have a checksum, and say
// its size.
func unpack(frame []byte, size, limit int64, out []byte) ([]byte, error) {
	var h zstd.Header
	if err := h.Decode(frame); err != nil {
		return nil, btfa.ErrCut
	}
	switch {
	case h.Skippable, h.DictionaryID != 0, !h.HasCheckSum:
		return nil, errors.New("want a zstd frame with a checksum, without dictionary")
	case !h.HasFCS && len(frame) > smallFrame:
		return nil, errors.New("want a zstd frame that says its size")
	case h.HasFCS && size >= 0 && h.FrameContentSize != uint64(size):
		return nil, fmt.Errorf("%d bytes unpacked, want %d", h.FrameContentSize, size)
	}
	want := int64(h.FrameContentSize)
	if !h.HasFCS {
		if want = size; want < 0 {
			want = smallFrames
		}
	}
	switch {
	case want < 0 || want > limit:
		return nil, fmt.Errorf("%d bytes unpacked, more than %d", h.FrameContentSize, limit)
	case want > smallFrames && want > limits.CorpusRatio*int64(len(frame)):
		return nil, fmt.Errorf("%d bytes unpacked, more than %d for each packed", want, limits.CorpusRatio)
	}
	d, err := decoder()
	if err != nil {
		return nil, err
	}
	had := len(out)
	out = reserve(out, int(want))
	b, err := d.DecodeAll(frame, out[:had:had+int(want)])
	if n := int64(len(b) - had); err == nil && (h.HasFCS || size >= 0) && n != want {
		err = fmt.Errorf("%d bytes unpacked, want %d", n, want)
	}
	return b, err
}

// chunk reads and unpacks a chunk, and appends that to out.
func (f *File) chunk(ctx context.Context, offset, packed, size int64, out []byte) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return out, err
	}
	buf, _ := frames.Get().(*[]byte)
	if buf == nil {
		buf = new([]byte)
	}
	defer func() {
		if cap(*buf) <= keepPayload {
			frames.Put(buf)
		}
	}()
	*buf = grow(*buf, int(packed))
	if err := readFull(f.r, *buf, offset); err != nil {
		return out, err
	}
	return unpack(*buf, size, limits.PartSize, out)
}

var frames sync.Pool

// Scratch is memory that reading takes, to be used again. It is for one goroutine at a time. The zero value is ready.
type Scratch struct{ builder builder }

// BTF appends the BTF of kernel i to out. It returns an error if the BTF does not have the SHA-256 that the index says.
func (f *File) BTF(ctx context.Context, s *Scratch, i int, out []byte) ([]byte, error) {
	btf, err := f.btf(ctx, s, i, out)
	if err == nil && sha256.Sum256(btf[len(out):]) != f.entries[i].Sum {
		err = errSum
	}
	if err != nil {
		return out, err
	}
	return btf, nil
}

// btf is BTF without the comparison.
func (f *File) btf(ctx context.Context, s *Scratch, i int, out []byte) ([]byte, error) {
	e := &f.entries[i]
	if e.Plain {
		offset, packed := e.chunk()
		return f.chunk(ctx, offset, packed, e.payload, out)
	}
	st, err := f.states.get(ctx, i)
	if err != nil {
		return out, err
	}
	return s.builder.build(ctx, st, e.Size, out)
}

var errSum = errors.New("its SHA-256 is not the one in the index")
