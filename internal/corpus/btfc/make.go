// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/internal/limits"
)

// newEncoders returns room for encoders, which are made when they are needed. They compress chunks, a tenth of the work, and each takes 13 MB;
// so there is one for two processors, and none while a large part is matched.
func newEncoders() chan *zstd.Encoder {
	all := make(chan *zstd.Encoder, (runtime.GOMAXPROCS(0)+1)/2)
	for range cap(all) {
		all <- nil
	}
	return all
}

// newEncoder returns an encoder. The best level would take three times as long as this one, for five to seven percent less.
func newEncoder() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(true),
		zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithWindowSize(8<<20))
}

// dropEncoders drops the encoders that are idle.
func (w *Writer) dropEncoders() {
	for range cap(w.encoders) {
		select {
		case <-w.encoders:
			w.encoders <- nil
		default:
		}
	}
}

// Make encodes a kernel that has been planned. After an error the file cannot be finished.
func (w *Writer) Make(ctx context.Context, k *Kernel) error {
	e := k.entry
	var chunks []byte
	for p := range numParts {
		if !e.has(p) {
			continue
		}
		of, err := w.encode(ctx, k, p)
		if err != nil {
			return err
		}
		c := &e.Chunks[p]
		for i, parts := range [][][]byte{of.front, of.back} {
			if parts == nil {
				continue
			}
			packed, size, err := w.pack(parts...)
			if err != nil {
				return err
			}
			*c.frames()[i] = frame{Packed: int64(len(packed)), Size: size, Check: sha256.Sum256(packed)}
			chunks = append(chunks, packed...)
		}
	}
	k.Input, k.btf = Input{}, nil
	return w.finish(e, chunks)
}

// encode returns the payloads of a part. What does not have the usual form is encoded as bytes.
func (w *Writer) encode(ctx context.Context, k *Kernel, p part) (out payloads, err error) {
	id := chunkID{p, k.number}
	from := k.entry.parent(id)
	if w.copies(k.entry, from) {
		return w.copyOf(ctx, k.entry, from)
	}
	parent := k.btf
	if from.kernel == k.number && parent == nil { // its BTF is a copy
		from = k.entry.parent(from)
	}
	if from.kernel != k.number {
		var r *reading
		if r, err = w.file.states.open(ctx, from); err != nil {
			return out, err
		}
		defer r.close()
		parent, err = r.get(ctx, from)
	}
	if err != nil {
		return out, err
	}
	large := sizeOf(k.blobs(p)) > reused
	if large {
		w.dropEncoders()
	}
	indexed := parent
	if p == partExtras {
		parent = parent.namesOnly()
	}
	for _, plain := range []bool{false, true} {
		parsed := k.parse(w.knownOf(from, indexed, !large), p, plain)
		if large {
			parsed.end()
		}
		m := match(parent, parsed, p == partModules && from.part == partBTF)
		if large {
			parsed.known.in, parsed.known.types = nil, typeTable{}
		}
		out, err = parsed.encode(parent, m)
		if !large {
			parsed.release()
		}
		if err != nil {
			continue
		}
		var st *state
		if st, err = check(parent, out, k.blobs(p)); err == nil {
			if p == partBTF {
				k.btf, k.entry.Plain = st, st.all.len() == 0 && st.numStrings() == 0
			}
			w.file.states.put(id, st)
			return out, nil
		}
	}
	return out, err
}

// blobs returns what a part is made of.
func (k *Kernel) blobs(p part) [][]byte {
	switch p {
	case partBTF:
		return [][]byte{k.BTF}
	case partExtras:
		variables, functions := splitSymbols(k.Extras.Symbols)
		return [][]byte{k.Extras.Config, variables, functions}
	}
	all := make([][]byte, len(k.Modules)+1)
	all[0] = k.BTF
	for i, m := range k.Modules {
		all[i+1] = m.BTF
	}
	return all
}

// reused is the size of a part in bytes up to which others use its memory again. Few kernels are larger, and others need much less.
const reused = 16 << 20

// sizeOf returns how many bytes there are.
func sizeOf(blobs [][]byte) (n int64) {
	for _, b := range blobs {
		n += int64(len(b))
	}
	return n
}

// parse parses a part.
func (k *Kernel) parse(known *known, p part, plain bool) *parsed {
	out := newParsed(known)
	blobs, words := k.blobs(p), 0
	for _, blob := range blobs {
		if s, err := readSections(blob, int64(len(blob))); err == nil && p != partExtras && !plain {
			words += int(s.Types.Len / 4)
		}
	}
	out.words = slices.Grow(out.words, words)
	for i, blob := range blobs {
		m := Module{BTF: blob}
		if i > 0 && p == partModules {
			m.Name = k.Modules[i-1].Name
		}
		switch {
		case p == partExtras:
			out.text(prefixOf(i, blob), blob)
		case plain:
			out.bytes(m)
		default:
			out.btf(m)
		}
	}
	return out
}

var errModel = errors.New("encoded and decoded, the bytes are others")

// check returns the state of a chunk. The error is errModel unless it gives the blobs.
func check(parent *state, of payloads, blobs [][]byte) (*state, error) {
	size := sizeOf(blobs)
	st, err := decode(parent, whole(of.front), whole(of.back), size, nil)
	if err != nil {
		return nil, err
	}
	if len(st.units) != len(blobs) {
		return nil, errModel
	}
	build, buf := builders.Get().(*builder), idleBuffers.Get().(*buffers)
	if size <= reused {
		defer builders.Put(build)
		defer idleBuffers.Put(buf)
	}
	err = build.each(st, func(i int, u *unit, write func([]byte) error) error {
		buf.data = slices.Grow(buf.data[:0], int(u.size))[:u.size]
		if err := write(buf.data); err != nil {
			return err
		}
		if !bytes.Equal(buf.data, blobs[i]) {
			return errModel
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return st, nil
}

// Encodes returns how many bytes of a planned kernel Make has to encode: those of parts that are not in the file yet.
func (w *Writer) Encodes(k *Kernel) (n int64) {
	for p := range numParts {
		if k.entry.has(p) && !w.copies(k.entry, k.entry.parent(chunkID{p, k.number})) {
			n += k.entry.unitsSize(p)
		}
	}
	return n
}

// copies reports whether a kernel has the content that a chunk of this writer holds: BTF, or BTF and modules.
func (w *Writer) copies(e *Entry, from chunkID) bool {
	if from.kernel < 0 || from.part == partExtras || e.Chunks[from.part].Parent != from.kernel {
		return false
	}
	o := w.file.entry(from.kernel)
	return o.made != nil && o.Sum == e.Sum && o.Size == e.Size &&
		(from.part == partBTF || o.Modules == e.Modules && o.ModulesSum == e.ModulesSum && o.ModulesSize == e.ModulesSize)
}

// copyOf returns the payload of an entry that has what a chunk holds: the units of that, with the same lists. It decodes neither,
// since the chunk was compared when it was made.
func (w *Writer) copyOf(ctx context.Context, e *Entry, id chunkID) (payloads, error) {
	o := w.file.entry(id.kernel)
	if err := o.wait(ctx); err != nil {
		return payloads{}, err
	}
	b := idleBuffers.Get().(*buffers)
	defer idleBuffers.Put(b)
	from := &o.Chunks[id.part].frame
	front, err := w.file.read(ctx, from, b)
	if err != nil {
		return payloads{}, o.wrap(ctx, from, err)
	}
	p := btfa.NewCursor(front)
	// The front begins with the numbers of names and of entities at the back.
	p.Uvarint()
	p.Uvarint()
	var in [numStreams]btfa.Cursor
	if err := split(&p, &in); err != nil {
		return payloads{}, o.wrap(ctx, from, err)
	}
	if id.part == partBTF {
		e.Plain = o.Plain
	}
	var out [numStreams][]byte
	out[streamUnits] = bytes.Clone(in[streamUnits].Rest())
	return payloads{front: join(&out, 0, 0)}, nil
}

// knownOf is newKnown for the state of a chunk. If keep is set, it keeps the last one for the next chunk with this parent.
func (w *Writer) knownOf(id chunkID, st *state, keep bool) *known {
	if !keep {
		return newKnown(st)
	}
	w.mu.Lock()
	if w.known == nil || w.knownChunk != id {
		w.known, w.knownChunk = sync.OnceValue(func() *known { return newKnown(st) }), id
	}
	get := w.known
	w.mu.Unlock()
	return get()
}

// smallPart is the number of bytes up to which a part shares a block with the one before it, and its entropy tables.
const smallPart = 1000

// pack returns a zstd frame, and how many bytes are in it. A part of more than smallPart bytes begins a block.
func (w *Writer) pack(parts ...[]byte) ([]byte, int64, error) {
	size := sizeOf(parts)
	if size > limits.PartSize {
		return nil, 0, &limits.Exceeded{Max: limits.PartSize, What: "bytes of BTF"}
	}
	var err error
	enc := <-w.encoders
	defer func() { w.encoders <- enc }()
	if enc == nil {
		if enc, err = newEncoder(); err != nil {
			return nil, 0, err
		}
	}
	var out bytes.Buffer
	enc.Reset(&out)
	for _, p := range parts {
		if len(p) > smallPart {
			if err := enc.Flush(); err != nil {
				return nil, 0, err
			}
		}
		if _, err := enc.Write(p); err != nil {
			return nil, 0, err
		}
	}
	if err := enc.Close(); err != nil {
		return nil, 0, err
	}
	pad(&out, size)
	return out.Bytes(), size, nil
}

// pad adds a skippable frame behind a frame that unpacks to so many bytes if readers would refuse that for its ratio.
func pad(frame *bytes.Buffer, size int64) {
	const header = 8
	if missing := size/limits.UnpackedRatio + 1 - int64(frame.Len()); size > limits.UnpackedRatio*int64(frame.Len()) {
		n := max(missing-header, 0)
		frame.Write(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, 0x184d2a50), uint32(n)))
		frame.Write(make([]byte, n))
	}
}
