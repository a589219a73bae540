// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/btfgen/btfgen/internal/limits"
)

// Maker has the memory that making chunks takes. It is for one goroutine at a time.
type Maker struct {
	enc     *zstd.Encoder
	builder builder
	buf     []byte
}

// NewMaker returns a maker.
func NewMaker() (*Maker, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true),
		zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(8<<20))
	return &Maker{enc: enc}, err
}

// Make makes the chunks of a kernel that has been planned. After an error the file cannot be finished.
func (w *Writer) Make(ctx context.Context, m *Maker, k *Kernel) error {
	chunk, st, err := w.chunk(ctx, m, k)
	if err != nil {
		return err
	}
	if len(k.modules) > 0 {
		more, err := w.modulesChunk(ctx, m, k, st)
		if err != nil {
			return err
		}
		k.entry.ModulesPacked = int64(len(more))
		chunk = append(chunk, more...)
	}
	if k.entry.hasExtras() {
		more, err := w.extrasChunk(ctx, m, k)
		if err != nil {
			return err
		}
		k.entry.ExtrasPacked = int64(len(more))
		chunk = append(chunk, more...)
	}
	k.entry.Packed = int64(len(chunk))
	if st != nil {
		w.file.states.remember(k.plan.number, st)
	}
	return w.finish(k, chunk)
}

// modulesChunk returns the chunk of a kernel's modules. st is the kernel's state, nil if it is kept as bytes or copied.
func (w *Writer) modulesChunk(ctx context.Context, m *Maker, k *Kernel, st *state) ([]byte, error) {
	e := &k.entry
	if k.plan.copied {
		o := &k.from.entries[k.number]
		offset, n := o.chunk()
		chunk := make([]byte, o.ModulesPacked)
		e.modules = o.modules
		return chunk, readFull(k.from.r, chunk, offset+n)
	}
	parts, err := w.modules(ctx, k, st)
	if err != nil {
		return nil, err
	}
	chunk, n, err := m.pack(parts...)
	e.modules = n
	return chunk, err
}

// chunk returns the kernel's own chunk, and its state if it can be encoded against its parts.
func (w *Writer) chunk(ctx context.Context, m *Maker, k *Kernel) ([]byte, *state, error) {
	e := &k.entry
	if k.plan.copied {
		chunk, err := k.copy()
		return chunk, nil, err
	}
	e.parent = -1
	for _, p := range slices.Backward(k.plan.line) { // the last that is not kept as bytes
		from, err := p.made(ctx)
		if err != nil {
			return nil, nil, err
		}
		if !from.Plain {
			e.parent = p.number
			break
		}
		if k.plan.again {
			e.Plain = true
		}
	}
	parent, err := w.file.states.get(ctx, e.parent)
	if err == nil {
		_, err = parent.strings()
	}
	if err != nil {
		return nil, nil, err
	}
	var st *state
	var parts [][]byte
	if !e.Plain {
		st, parts, _ = w.model(ctx, m, parent, k)
	}
	if e.Plain = st == nil; e.Plain {
		e.parent, parts = -1, [][]byte{k.btf}
	}
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	chunk, n, err := m.pack(parts...)
	e.payload = n
	return chunk, st, err
}

// copy returns the chunk of a kernel in another file, and makes its entry like the one there.
func (k *Kernel) copy() ([]byte, error) {
	o, e := &k.from.entries[k.number], &k.entry
	offset, n := o.chunk()
	chunk := make([]byte, n)
	if err := readFull(k.from.r, chunk, offset); err != nil {
		return nil, err
	}
	e.payload, e.Plain = o.payload, o.Plain
	return chunk, nil
}

// model tells a kernel from its parts, and makes sure that it can be put together again.
func (w *Writer) model(ctx context.Context, m *Maker, parent *state, k *Kernel) (*state, [][]byte, error) {
	e := &k.entry
	var s *streams
	var err error
	if k.plan.again {
		s, err = parent.again()
	} else {
		s, err = encode(parent, w.knownOfParent(e.parent, parent), k.btf)
	}
	if err != nil {
		return nil, nil, err
	}
	parts := s.parts()
	st, err := decode(ctx, parent, slices.Concat(parts...), e.Size, nil)
	if err != nil || k.plan.again {
		return st, parts, err
	}
	if m.buf, err = m.builder.build(ctx, st, e.Size, m.buf[:0]); err != nil {
		return nil, nil, err
	}
	if !bytes.Equal(m.buf, k.btf) {
		return nil, nil, errModel
	}
	return st, parts, nil
}

// knownOfParent is newKnown for the state of a kernel, which its next child needs, too.
func (w *Writer) knownOfParent(number int, st *state) *known {
	w.mu.Lock()
	if w.known == nil || w.knownOf != number {
		w.known, w.knownOf = sync.OnceValue(func() *known { return newKnown(st) }), number
	}
	get := w.known
	w.mu.Unlock()
	return get()
}

// smallPart is up to how many bytes a part shares a block with the one before it, and its entropy tables.
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

// frame returns a zstd frame of parts, which have size bytes. A part of more than smallPart bytes begins a block, which takes four bytes at least.
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
