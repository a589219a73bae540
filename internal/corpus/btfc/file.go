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

// File is a corpus in one file, open for reading. It is safe for concurrent use, and caches the kernels read last.
type File struct {
	reader   io.ReaderAt
	packages []Package
	end      int64 // where the chunks end
	states   *cache
	fronts   *cache // states decoded for a query; nil if there is none

	mu      sync.Mutex
	entries []*Entry // those of a file that is being written become more
}

// add adds an entry to a file that is being written.
func (f *File) add(e *Entry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.entries = append(f.entries, e)
}

func (f *File) entry(i int) *Entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.entries[i]
}

// parent returns what a chunk is encoded against.
func (f *File) parent(id chunkID) chunkID { return f.entry(id.kernel).parent(id) }

// parent returns what a chunk of the entry, with number id.kernel, is encoded against.
func (e *Entry) parent(id chunkID) chunkID {
	if i := e.Chunks[id.part].Parent; i >= 0 || id.part == partBTF {
		return chunkID{id.part, i}
	}
	return chunkID{partBTF, id.kernel}
}

var errEnd = errors.New("does not end as a corpus does: it may have been cut short")

// Ends reports whether a file of size bytes ends as a corpus does, even if its beginning is damaged.
func Ends(r io.ReaderAt, size int64) bool {
	var mark [len(endMark)]byte
	return size >= int64(len(mark)) && readFull(r, mark[:], size-int64(len(mark))) == nil && string(mark[:]) == endMark
}

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
	length, unpacked := binary.LittleEndian.Uint64(foot[:]), binary.LittleEndian.Uint64(foot[8:])
	switch {
	case string(foot[16+sha256.Size:]) != endMark:
		return nil, errEnd
	case string(head[:len(Magic)]) != Magic:
		return nil, errors.New("does not begin as a corpus does: it may be damaged")
	case head[len(Magic)] != version:
		return nil, fmt.Errorf("version %d of the format, want %d", head[len(Magic)], version)
	case length > uint64(size)-uint64(headerLen+footerLen):
		return nil, errEnd
	case max(length, unpacked) > limits.CorpusIndex:
		return nil, fmt.Errorf("index: %d bytes, more than %d", max(length, unpacked), limits.CorpusIndex)
	}
	if err := new(limits.Ratio).Allow(int64(length), int64(unpacked)); err != nil {
		return nil, fmt.Errorf("index: %w", err)
	}
	end := size - int64(footerLen) - int64(length)
	index, err := new(buffers).unpack(r, end, int64(length), int64(unpacked), Sum(foot[16:]))
	if err != nil {
		return nil, fmt.Errorf("index: %w", err)
	}
	entries, packages, err := parseIndex(index, end)
	if err != nil {
		return nil, err
	}
	f := newFile(r, entries)
	f.packages, f.end = packages, end
	return f, nil
}

func newFile(r io.ReaderAt, entries []*Entry) *File {
	f := &File{reader: r, entries: entries}
	f.states = newCache(f, nil)
	return f
}

// Entries returns the kernels in the order in which they were added. The caller must not change them.
func (f *File) Entries() []*Entry { return f.entries }

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

// Sources returns sums that determine what kernel i is read from: of its BTF and, if it has modules, of these. Each is the SHA-256 of the
// frames of the chunk and its ancestors.
func (f *File) Sources(i int) (sums [][sha256.Size]byte) {
	for _, p := range []part{partBTF, partModules} {
		if !f.entry(i).has(p) {
			continue
		}
		h := sha256.New()
		for id := (chunkID{p, i}); id.kernel >= 0; id = f.parent(id) {
			for _, frame := range f.entry(id.kernel).Chunks[id.part].frames() {
				h.Write(frame.Check[:])
			}
		}
		sums = append(sums, [sha256.Size]byte(h.Sum(nil)))
	}
	return sums
}

var unpacker = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecodeAllCapLimit(true),
		zstd.WithDecoderMaxMemory(1<<31), zstd.WithDecoderMaxWindow(limits.Dictionary))
})

// buffers has memory for unpacking.
type buffers struct{ frame, data []byte }

// release makes b idle, unless it is large.
func (b *buffers) release() {
	if cap(b.frame)+cap(b.data) <= reused {
		idleBuffers.Put(b)
	}
}

// idleBuffers has buffers that are not in use.
var idleBuffers = sync.Pool{New: func() any { return new(buffers) }}

// read reads the packed bytes at an offset, whose SHA-256 is sum, into b.frame.
func (b *buffers) read(r io.ReaderAt, offset, packed int64, sum Sum) error {
	b.frame = slices.Grow(b.frame[:0], int(packed))[:packed]
	if err := readFull(r, b.frame, offset); err != nil {
		return err
	}
	if packed > 0 && sha256.Sum256(b.frame) != sum {
		return errFrame
	}
	return nil
}

// unpack returns the contents of the zstd frames at an offset, whose SHA-256 is sum: size bytes. They are valid until the next call.
func (b *buffers) unpack(r io.ReaderAt, offset, packed, size int64, sum Sum) ([]byte, error) {
	if err := b.read(r, offset, packed, sum); err != nil {
		return nil, err
	}
	d, err := unpacker()
	if err != nil {
		return nil, err
	}
	b.data, err = d.DecodeAll(b.frame, slices.Grow(b.data[:0], int(size)))
	if err == nil && int64(len(b.data)) != size {
		err = fmt.Errorf("%d bytes unpacked, want %d", len(b.data), size)
	}
	return b.data, err
}

// read returns the unpacked contents of a frame, which are valid until b is used again.
func (f *File) read(ctx context.Context, from *frame, b *buffers) ([]byte, error) {
	if err := ctx.Err(); err != nil || from.Size == 0 {
		return nil, err
	}
	return b.unpack(f.reader, from.offset, from.Packed, from.Size, from.Check)
}

// decodeState decodes a chunk, with the states of a cache.
func (f *File) decodeState(ctx context.Context, id chunkID, states *cache) (*state, error) {
	if id.kernel < 0 {
		return newState(), nil
	}
	e := f.entry(id.kernel)
	if err := e.wait(ctx); err != nil {
		return nil, err
	}
	parent, err := states.get(ctx, e.parent(id))
	if err != nil {
		return nil, err
	}
	if id.part == partExtras {
		parent = parent.namesOnly()
	}
	var st *state
	var payloads [2][]byte
	for _, from := range e.Chunks[id.part].frames() {
		if from.large {
			return nil, e.wrap(ctx, from, limits.ErrRatio)
		}
	}
	for i, from := range e.Chunks[id.part].frames() {
		b := idleBuffers.Get().(*buffers)
		defer b.release()
		if i > 0 && states.query != nil { // only its sum is checked
			err = b.read(f.reader, from.offset, from.Packed, from.Check)
		} else {
			payloads[i], err = f.read(ctx, from, b)
		}
		if err != nil {
			return nil, e.wrap(ctx, from, err)
		}
	}
	if err = checkLate(payloads[0], e.Chunks[id.part].Back.Size); err == nil {
		st, err = decode(parent, payloads[0], payloads[1], e.unitsSize(id.part), states.query)
	}
	if err == nil && len(st.units) != [...]int{1, 1 + e.Modules, extrasUnits}[id.part] {
		err = errWrong
	}
	if err != nil {
		return nil, e.wrap(ctx, &e.Chunks[id.part].frame, err)
	}
	return st, nil
}

// wait waits until a kernel that is being written has been made.
func (e *Entry) wait(ctx context.Context) error {
	if e.made == nil {
		return nil
	}
	select {
	case <-e.made:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// build appends the units of a part of kernel i to out, for modules without the kernel. check returns an error if they are not right.
func (f *File) build(ctx context.Context, p part, i int, out []byte, check func(*state, []byte) error) ([]byte, error) {
	r, err := f.states.open(ctx, chunkID{p, i})
	if err != nil {
		return out, err
	}
	defer r.close()
	st, err := r.get(ctx, chunkID{p, i})
	if err != nil {
		return out, err
	}
	b := builders.Get().(*builder)
	defer b.release()
	skip := 0
	if p == partModules {
		skip = 1
	}
	all, err := b.build(st, skip, out)
	if err == nil {
		err = check(st, all[len(out):])
	}
	switch {
	case err == errSum && p == partBTF: // callers name the kernel, and its chunk may be right
		return out, err
	case err != nil:
		return out, f.entries[i].wrap(ctx, &f.entries[i].Chunks[p].frame, err)
	}
	return all, nil
}

var (
	errSum   = errors.New("its SHA-256 is not the one in the index")
	errFrame = errors.New("damaged: its SHA-256 is not the one in the file")
)

// BTF appends the BTF of kernel i to out. It returns an error if the BTF does not have the SHA-256 in the index.
func (f *File) BTF(ctx context.Context, i int, out []byte) ([]byte, error) {
	return f.build(ctx, partBTF, i, out, func(_ *state, btf []byte) error {
		if sha256.Sum256(btf) != f.entries[i].Sum {
			return errSum
		}
		return nil
	})
}

// Modules returns the BTF of the modules of kernel i, in order of their names. It returns an error if they do not have the SHA-256 in the
// index.
func (f *File) Modules(ctx context.Context, i int) (out []Module, err error) {
	e := f.entries[i]
	if !e.has(partModules) {
		return nil, nil
	}
	_, err = f.build(ctx, partModules, i, nil, func(st *state, all []byte) error {
		for _, u := range st.units[1:] {
			out = append(out, Module{u.name, all[:u.size:u.size]})
			all = all[u.size:]
		}
		sum, _, err := sumModules(out)
		if err == nil && sum != e.ModulesSum {
			err = errSum
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Extras returns the configuration and the symbols of kernel i.
func (f *File) Extras(ctx context.Context, i int) (x Extras, err error) {
	e := f.entries[i]
	if !e.has(partExtras) {
		return x, nil
	}
	_, err = f.build(ctx, partExtras, i, nil, func(st *state, all []byte) error {
		if st.units[0].size != e.Config {
			return errWrong
		}
		if e.Config > 0 {
			x.Config = all[:e.Config:e.Config]
		}
		if e.Symbols > 0 {
			x.Symbols = all[e.Config:]
		}
		return nil
	})
	return x, err
}
