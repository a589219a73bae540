// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/internal/limits"
)

// File is a corpus in one file, open for reading. It is safe for concurrent use, and remembers the kernels that others
// are likely to be told from.
type File struct {
	r       io.ReaderAt
	entries []Entry
	end     int64 // of the chunks
	states  states
	known   recent[*lines]       // extras
	modules recent[*moduleState] // kernels with these

	expected []bool // which kernels will be read, with those that they are told from; nil for nobody knows

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
	f.states.file = f
	return f
}

// Entries returns the kernels in the order in which they were added. They must not be changed.
func (f *File) Entries() []Entry { return f.entries }

// Expect says which kernels will be read, mostly once each: what it takes to tell others from them is not kept then, nor copied where one alone is told from a
// kernel. Others can be read, too, but may take longer. It is called before anything is read.
func (f *File) Expect(kernels []int) {
	f.expected = make([]bool, len(f.entries))
	for _, i := range kernels {
		f.expected[i] = true
	}
	for i, e := range slices.Backward(f.entries) {
		if f.expected[i] && e.parent >= 0 {
			f.expected[e.parent] = true
		}
	}
}

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
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(1<<31), zstd.WithDecoderMaxWindow(limits.Dictionary))
})

// smallFrame is up to how many bytes a frame need not say its size, which those of fewer than 256 bytes do not.
const smallFrame = 1 << 10

// unpack appends what one zstd frame holds to out: size bytes, or if that is -1 up to limit. It must have a checksum, and say
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
	if err := tooMany(h.FrameContentSize, limit, frame); err != nil {
		return nil, err
	}
	d, err := decoder()
	if err != nil {
		return nil, err
	}
	had := len(out)
	out, _ = reserve(out, int(h.FrameContentSize))
	b, err := d.DecodeAll(frame, out)
	n := int64(len(b) - had)
	if want := int64(h.FrameContentSize); err == nil && (h.HasFCS && n != want || size >= 0 && n != size) {
		err = fmt.Errorf("%d bytes unpacked, want %d", n, max(size, want))
	}
	return b, err
}

// tooMany returns an error if what is packed unpacks to more bytes than limit, or than its own length allows.
func tooMany(size uint64, limit int64, packed []byte) error {
	switch {
	case size > uint64(limit):
		return fmt.Errorf("%d bytes unpacked, more than %d", size, limit)
	case size > limits.CorpusRatio*uint64(len(packed))+1<<20:
		return fmt.Errorf("%d bytes unpacked, more than %d for each packed", size, limits.CorpusRatio)
	}
	return nil
}

// unpackChunk is unpack for a chunk, which holds size bytes, or up to limits.PartSize if that is -1. If it is of two frames, they are unpacked beside
// each other, to where they belong in out.
func unpackChunk(ctx context.Context, chunk []byte, size int64, out []byte) ([]byte, error) {
	end, first := frameEnd(chunk)
	if end == 0 || size < 0 {
		return unpack(chunk, size, limits.PartSize, out)
	}
	if first > size {
		return out, fmt.Errorf("%d bytes unpacked, want %d", first, size)
	}
	if err := tooMany(uint64(size), limits.PartSize, chunk); err != nil {
		return out, err
	}
	had := len(out)
	out, _ = reserve(out, int(size))
	mid, all := had+int(first), had+int(size)
	second := begin(ctx, func() ([]byte, error) { return unpack(chunk[end:], size-first, limits.PartSize, out[mid:mid:all]) })
	_, err := unpack(chunk[:end], first, limits.PartSize, out[had:had:mid])
	_, failed := second.get()
	return out[:all], cmp.Or(err, failed)
}

// frameEnd returns where the first of two frames ends, and what it unpacks to; 0 if that is not two frames that say what they unpack to.
func frameEnd(b []byte) (end int, size int64) {
	var h, next zstd.Header
	if h.Decode(b) != nil || h.Skippable || !h.HasFCS || h.FrameContentSize > limits.PartSize {
		return 0, 0
	}
	const checksum, blockHead, single = 4, 3, 1
	at := h.HeaderSize
	for last := false; !last; {
		if len(b)-at < blockHead {
			return 0, 0
		}
		v := int(b[at]) | int(b[at+1])<<8 | int(b[at+2])<<16
		last = v&1 != 0
		if at += blockHead; v>>1&3 == single { // a byte, repeated
			at++
		} else {
			at += v >> 3
		}
	}
	if at += checksum; at >= len(b) || next.Decode(b[at:]) != nil || !next.HasFCS {
		return 0, 0
	}
	return at, int64(h.FrameContentSize)
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
	return unpackChunk(ctx, *buf, size, out)
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
	st, err := f.states.ahead(ctx, i, 0)
	if err != nil {
		return out, err
	}
	btf, err := s.builder.build(ctx, st, e.Size, out)
	if failed := f.states.complete(ctx, i, st); failed != nil {
		return out, failed
	}
	return btf, err
}

var errSum = errors.New("its SHA-256 is not the one in the index")
