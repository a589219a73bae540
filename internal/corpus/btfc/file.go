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
	"math"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/internal/limits"
)

// File is a corpus in one file, open for reading. It is safe for concurrent use, and caches the kernels read last.
type File struct {
	r        io.ReaderAt
	entries  []Entry
	packages []Package
	end      int64  // of the chunks
	query    *Query // nil if there is none
	states   cache

	// find returns the entry of a kernel of a file that is being written.
	find func(ctx context.Context, i int) (*Entry, error)
}

// entry returns the entry of a kernel whose chunks are in the file.
func (f *File) entry(ctx context.Context, i int) (*Entry, error) {
	if f.find != nil {
		return f.find(ctx, i)
	}
	return &f.entries[i], nil
}

// parent returns what a part of a kernel is encoded against: the same part of the nearest ancestor that has it.
func (f *File) parent(ctx context.Context, p part, e *Entry) (chunkID, error) {
	for range limits.CorpusDepth {
		if e.parent < 0 {
			break
		}
		id := chunkID{p, e.parent}
		var err error
		if e, err = f.entry(ctx, e.parent); err != nil || e.has(p) {
			return id, err
		}
	}
	return chunkID{p, -1}, nil
}

var errEnd = errors.New("does not end as a corpus does: it may have been cut short")

// Open reads the index of a file of size bytes. The file reads kernels from r.
func Open(r io.ReaderAt, size int64) (*File, error) {
	if size < int64(headerLen+footerLen) {
		return nil, errEnd
	}
	var head [headerLen]byte
	var foot [footerLen]byte
	if err := cmp.Or(readFull(r, foot[:], size-int64(footerLen)), readFull(r, head[:], 0)); err != nil {
		return nil, err
	}
	length := binary.LittleEndian.Uint64(foot[:])
	switch {
	case string(foot[8:]) != endMark:
		return nil, errEnd
	case string(head[:len(Magic)]) != Magic:
		return nil, errors.New("not a corpus")
	case head[len(Magic)] != version:
		return nil, fmt.Errorf("version %d of the format, want %d", head[len(Magic)], version)
	case length > uint64(size)-uint64(headerLen+footerLen):
		return nil, errEnd
	case length > limits.CorpusIndex:
		return nil, fmt.Errorf("index: %d bytes, more than %d", length, limits.CorpusIndex)
	}
	end := size - int64(footerLen) - int64(length)
	frame := make([]byte, length)
	if err := readFull(r, frame, end); err != nil {
		return nil, err
	}
	index, err := unpack(frame, -1, limits.CorpusIndex, nil)
	if err != nil {
		return nil, fmt.Errorf("index: %w", err)
	}
	entries, packages, err := parseIndex(index, end)
	if err != nil {
		return nil, err
	}
	f := newFile(r, entries, end, nil)
	f.packages = packages
	return f, nil
}

func newFile(r io.ReaderAt, entries []Entry, end int64, q *Query) *File {
	f := &File{r: r, entries: entries, end: end, query: q}
	f.states = cache{file: f, of: make(map[chunkID]*cached)}
	return f
}

// Entries returns the kernels in the order in which they were added. The caller must not change them.
func (f *File) Entries() []Entry { return f.entries }

// Packages returns the packages that the file was made from. The caller must not change them.
func (f *File) Packages() []Package { return f.packages }

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

// smallFrame is the number of bytes up to which a frame need not have its decompressed size, which encoders omit below 256 bytes.
const smallFrame = 1 << 10

// smallFrames is the number of bytes that a frame of any size may unpack to.
const smallFrames = 1 << 20

// unpack appends the contents of one zstd frame to out: size bytes or, if that is -1, up to limit. The frame must have a checksum, and
// unless it is small, its decompressed size.
func unpack(frame []byte, size, limit int64, out []byte) ([]byte, error) {
	var h zstd.Header
	if err := h.Decode(frame); err != nil {
		return nil, btfa.ErrCut
	}
	switch {
	case h.Skippable, h.DictionaryID != 0, !h.HasCheckSum:
		return nil, errors.New("want a zstd frame with a checksum, without dictionary")
	case !h.HasFCS && len(frame) > smallFrame:
		return nil, errors.New("want a zstd frame with its decompressed size")
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
	out = slices.Grow(out, int(want))
	b, err := d.DecodeAll(frame, out[:had:had+int(want)])
	if n := int64(len(b) - had); err == nil && (h.HasFCS || size >= 0) && n != want {
		err = fmt.Errorf("%d bytes unpacked, want %d", n, want)
	}
	return b, err
}

// read appends the unpacked contents of a chunk to out.
func (f *File) read(ctx context.Context, c chunk, out []byte) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return out, err
	}
	frame := make([]byte, c.packed)
	if err := readFull(f.r, frame, c.offset); err != nil {
		return out, err
	}
	return unpack(frame, c.size, limits.PartSize, out)
}

// decodeState decodes a part of a kernel.
func (f *File) decodeState(ctx context.Context, id chunkID, depth int) (*state, error) {
	if id.kernel < 0 {
		return newState(), nil
	}
	e, err := f.entry(ctx, id.kernel)
	if err != nil {
		return nil, err
	}
	if e.Plain && id.part == partBTF {
		return nil, errors.New("encoded against a plain kernel")
	}
	parent, err := f.parentState(ctx, id.part, e, depth)
	if err != nil {
		return nil, err
	}
	var base *state
	var q *Query
	size := e.Size
	switch id.part {
	case partBTF:
		q = f.query
	case partModules:
		size = math.MaxInt32
		if base, err = f.baseState(ctx, id.kernel, e, depth); err != nil {
			return nil, err
		}
	case partExtras:
		size = e.Config + e.Symbols
	}
	var st *state
	payload, err := f.read(ctx, e.chunks[id.part], nil)
	if err == nil {
		st, err = decode(id.part, parent, base, payload, size, q)
	}
	if err != nil {
		return nil, e.wrap(ctx, id.part, err)
	}
	return st, nil
}

// parentState returns the state that a part of a kernel is encoded against.
func (f *File) parentState(ctx context.Context, p part, e *Entry, depth int) (*state, error) {
	parent, err := f.parent(ctx, p, e)
	if err != nil {
		return nil, err
	}
	return f.states.at(ctx, parent, depth+1)
}

// baseState returns the state of kernel i for its modules: an empty one if the kernel is plain.
func (f *File) baseState(ctx context.Context, i int, e *Entry, depth int) (*state, error) {
	if e.Plain {
		i = -1
	}
	return f.states.at(ctx, chunkID{partBTF, i}, depth+1)
}

var errSum = errors.New("its SHA-256 is not the one in the index")

// BTF appends the BTF of kernel i to out. It returns an error if the BTF does not have the SHA-256 in the index.
func (f *File) BTF(ctx context.Context, i int, out []byte) (btf []byte, err error) {
	e := &f.entries[i]
	if e.Plain {
		btf, err = f.read(ctx, e.chunks[partBTF], out)
	} else {
		var st *state
		if st, err = f.states.get(ctx, chunkID{partBTF, i}); err == nil {
			b := builders.Get().(*builder)
			defer builders.Put(b)
			btf, err = b.build(st, e.Size, out)
		}
	}
	if err == nil && sha256.Sum256(btf[len(out):]) != e.Sum {
		err = errSum
	}
	if err != nil {
		return out, err
	}
	return btf, nil
}
