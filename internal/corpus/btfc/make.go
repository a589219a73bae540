// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/btfgen/btfgen/internal/limits"
)

// Maker encodes kernels and compresses chunks. It reuses its memory, and is for one goroutine at a time.
type Maker struct {
	enc     *zstd.Encoder
	builder builder
	buf     []byte
}

// NewMaker returns a Maker.
func NewMaker() (*Maker, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true),
		zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(8<<20))
	return &Maker{enc: enc}, err
}

// Make encodes a kernel that has been planned. After an error the file cannot be finished.
func (w *Writer) Make(ctx context.Context, m *Maker, k *Kernel) error {
	e := &k.entry
	if k.copied {
		o := &k.from.entries[k.fromNumber]
		e.Plain, e.chunks = o.Plain, o.chunks
		chunks := make([]byte, o.Packed())
		if err := readFull(k.from.r, chunks, o.chunks[partBTF].offset); err != nil {
			return err
		}
		return w.finish(k, chunks)
	}
	base, parts, err := w.encodeBTF(ctx, m, k)
	if err != nil {
		return err
	}
	chunks, err := m.chunk(nil, e, partBTF, parts)
	for _, p := range []part{partModules, partExtras} {
		if err == nil && e.has(p) {
			if parts, err = w.encodePart(ctx, k, p, base); err == nil {
				chunks, err = m.chunk(chunks, e, p, parts)
			}
		}
	}
	if err != nil {
		return err
	}
	return w.finish(k, chunks)
}

// chunk appends the chunk of a part to those of the parts before it, and notes its sizes.
func (m *Maker) chunk(chunks []byte, e *Entry, p part, parts [][]byte) ([]byte, error) {
	frame, size, err := m.pack(parts...)
	e.chunks[p].packed, e.chunks[p].size = int64(len(frame)), size
	return append(chunks, frame...), err
}

// encodeBTF returns the state of a kernel and the parts of its payload. A kernel that does not have the usual form is plain, and its
// state is empty.
func (w *Writer) encodeBTF(ctx context.Context, m *Maker, k *Kernel) (st *state, parts [][]byte, err error) {
	e := &k.entry
	if e.parent >= 0 {
		from, err := w.entry(ctx, e.parent)
		if err != nil {
			return nil, nil, err
		}
		if from.Plain {
			e.parent = -1
		}
	}
	parent, err := w.file.states.get(ctx, chunkID{partBTF, e.parent})
	if err == nil {
		_, err = parent.list()
	}
	if err != nil {
		return nil, nil, err
	}
	known := w.knownOf(e.parent, parent)
	st, parts, err = m.encode(parent, known, e.Size, k.btf)
	switch {
	case ctx.Err() != nil:
		return nil, nil, ctx.Err()
	case err != nil:
		e.Plain, e.parent = true, -1
		return newState(), [][]byte{k.btf}, nil
	}
	w.file.states.put(chunkID{partBTF, k.number}, st)
	return st, parts, nil
}

// encode encodes BTF, and checks that decoding it gives the same bytes.
func (m *Maker) encode(parent *state, k *known, size int64, btf []byte) (st *state, parts [][]byte, err error) {
	p, err := parse(k, btf)
	if err != nil {
		return nil, nil, err
	}
	s, err := write(parent, p, match(parent, k, p))
	if err != nil {
		return nil, nil, err
	}
	parts = s.parts()
	if st, err = decode(partBTF, parent, nil, slices.Concat(parts...), size, nil); err != nil {
		return nil, nil, err
	}
	if m.buf, err = m.builder.build(st, size, m.buf[:0]); err == nil && !bytes.Equal(m.buf, btf) {
		err = errModel
	}
	return st, parts, err
}

// encodePart returns the parts of the payload of a kernel's modules or extras, and checks that decoding it gives the same bytes. base is
// the state of the kernel.
func (w *Writer) encodePart(ctx context.Context, k *Kernel, p part, base *state) (parts [][]byte, err error) {
	e := &k.entry
	parent, err := w.file.parentState(ctx, p, e, 0)
	if err != nil {
		return nil, err
	}
	size := e.Config + e.Symbols
	if p == partModules {
		size = math.MaxInt32
		parts, err = encodeModules(parent, base, newKnown(parent), k.modules)
	} else {
		base = nil
		parts, err = encodeExtras(parent, newKnown(parent), k.extras)
	}
	if err != nil {
		return nil, err
	}
	st, err := decode(p, parent, base, slices.Concat(parts...), size, nil)
	if err != nil {
		return nil, err
	}
	same := false
	if p == partModules {
		var all []Module
		all, err = st.modules(ctx, len(k.modules))
		same = slices.EqualFunc(all, k.modules, func(a, b Module) bool { return bytes.Equal(a.BTF, b.BTF) })
	} else {
		var x Extras
		x, err = st.extras(e.Config, e.Symbols)
		same = bytes.Equal(x.Config, k.extras.Config) && bytes.Equal(x.Symbols, k.extras.Symbols)
	}
	if err == nil && !same {
		err = fmt.Errorf("modules, configuration or symbols: %w", errModel)
	}
	if err == nil {
		w.file.states.put(chunkID{p, k.number}, st)
	}
	return parts, err
}

// knownOf is newKnown for the state of a kernel. It keeps the last one for the kernel's next child.
func (w *Writer) knownOf(number int, st *state) *known {
	w.mu.Lock()
	if w.known == nil || w.knownKernel != number {
		w.known, w.knownKernel = sync.OnceValue(func() *known { return newKnown(st) }), number
	}
	get := w.known
	w.mu.Unlock()
	return get()
}

// smallPart is the number of bytes up to which a part shares a block with the one before it, and its entropy tables.
const smallPart = 1000

// pack returns a zstd frame, and how many bytes are in it.
func (m *Maker) pack(parts ...[]byte) ([]byte, int64, error) {
	size := int64(0)
	for _, p := range parts {
		size += int64(len(p))
	}
	if size > limits.PartSize {
		return nil, 0, &limits.Exceeded{Max: limits.PartSize, What: "bytes of BTF"}
	}
	frame, err := m.frame(parts, size)
	if err == nil && size > smallFrames && size > limits.CorpusRatio*int64(len(frame)) {
		frame, err = m.frame(slices.Collect(slices.Chunk(slices.Concat(parts...), 2*smallPart)), size)
	}
	return frame, size, err
}

// frame returns a zstd frame of parts, which have size bytes. A part of more than smallPart bytes begins a block, which takes four
// bytes or more.
func (m *Maker) frame(parts [][]byte, size int64) ([]byte, error) {
	var out bytes.Buffer
	m.enc.ResetContentSize(&out, size)
	for _, p := range parts {
		if len(p) > smallPart {
			if err := m.enc.Flush(); err != nil {
				return nil, err
			}
		}
		if _, err := m.enc.Write(p); err != nil {
			return nil, err
		}
	}
	err := m.enc.Close()
	return out.Bytes(), err
}
