// SPDX-License-Identifier: Apache-2.0

package btf

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"unsafe"
)

// namedType is a type that a relocation can name.
type namedType struct {
	id   TypeID
	name uint32 // offset
}

// walkKind is the shape of a kind in the form that walker.run needs.
type walkKind struct {
	head  uint32 // 32-bit words before the elements: hdrWords, or byHand
	elem  uint32 // words of an element, 2 or 3 with a name first, or 0
	ref   uint32 // mask: all ones if the header's last word is a reference
	refs  uint32 // mask: all ones if an element's second word is a reference
	named uint32 // 1 if a relocation can name it
}

// byHand is the head of kinds that walker.run leaves to walker.step: more words than a
// blob has.
const byHand = 1 << 31

var walkKinds = func() (kinds [128]walkKind) {
	for k := range kinds {
		kinds[k].head = byHand
	}
	mask := func(w Word) uint32 {
		if w == Ref {
			return ^uint32(0)
		}
		return 0
	}
	for k := range Kind(NumKinds) {
		s := k.Shape()
		if k == KindVoid || len(s.Extra) > 0 || len(s.Elem) > 0 && s.Elem[0] != Name {
			continue
		}
		w := walkKind{head: hdrWords, elem: uint32(len(s.Elem)), ref: mask(s.Third)}
		if w.elem > 0 {
			w.refs = mask(s.Elem[1])
		}
		if s.Named {
			w.named = 1
		}
		kinds[k] = w
	}
	return kinds
}()

// walkChunk is how many types walk reads before it checks the context, some
// milliseconds of work.
const walkChunk = 1 << 20

// walk finds where each type starts, and checks all references. A run over a corpus
// spends most of its time here. So walker.run makes no calls, and of a kind it branches
// only on the size of the elements, because a processor cannot predict the order of the
// kinds. walker.step reads the rare kinds.
func (b *BTF) walk(ctx context.Context, layouts []byte) error {
	// A type takes some 30 bytes. A quarter more leaves room for the next kernel.
	if want := 4 * len(b.types) / 28; cap(b.starts) < want {
		b.starts = make([]uint32, want+want/4)
		b.named = make([]namedType, want/4)
	}
	w := walker{types: b.types, first: b.first, named: b.named[:cap(b.named)]}
	w.starts = b.starts[:min(cap(b.starts), walkChunk)]
	for {
		w.run()
		if w.n == len(w.starts) {
			if err := ctx.Err(); err != nil {
				return err
			}
			w.starts = slices.Grow(w.starts, 1)
			w.starts = w.starts[:min(cap(w.starts), w.n+walkChunk)]
			continue
		}
		if w.numNamed == len(w.named) {
			w.named = slices.Grow(w.named, 1)
			w.named = w.named[:cap(w.named)]
			continue
		}
		if w.off == uint(len(w.types)) {
			break
		}
		if err := w.step(layouts); err != nil {
			return fmt.Errorf("types: type %d at byte %d: %w", b.first+TypeID(w.n), 4*w.off, err)
		}
	}
	b.starts, b.named, b.kinds = w.starts[:w.n], w.named[:w.numNamed], w.kinds
	if w.names >= b.strEnd() || w.refs >= uint32(b.NumTypes()) {
		return b.outside(ctx)
	}
	for i := 0; i < len(b.named) && b.ptr == 0; i++ {
		if t := b.Type(b.named[i].id); t.Kind() == KindInt {
			b.ptr = t.pointerSize()
		}
	}
	return nil
}

// outside returns the error for the first type that refers to something outside the blob.
func (b *BTF) outside(ctx context.Context) error {
	for i := range b.starts {
		if i%walkChunk == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		var w walker
		w.note(b.types[b.starts[i]:])
		t := b.Type(b.first + TypeID(i))
		if w.names >= b.strEnd() {
			return fmt.Errorf("types: type %d (%s) has a name at byte %d, strings end at %d", t.ID, t.Kind(), w.names, b.strEnd())
		}
		if w.refs >= uint32(b.NumTypes()) {
			return fmt.Errorf("types: type %d (%s) refers to type %d of %d", t.ID, t.Kind(), w.refs, b.NumTypes()-1)
		}
	}
	return errors.New("types: a type refers to something outside")
}

// walker is the state of a walk.
type walker struct {
	types    []uint32
	off      uint // words
	first    TypeID
	starts   []uint32
	n        int // number of types so far; the rest of starts is free
	named    []namedType
	numNamed int
	kinds    [128]uint32 // types of each kind
	names    uint32      // the largest name offset
	refs     uint32      // the largest ID in a reference
}

// run reads types up to the end or a type for step, or until starts or named is full.
func (w *walker) run() {
	types, starts, named := w.types, w.starts, w.named
	off, n, numNamed := w.off, w.n, w.numNamed
	names, refs, kinds := w.names, w.refs, &w.kinds
	for n < len(starts) && numNamed < len(named) && off+hdrWords <= uint(len(types)) {
		name, info, size := types[off], types[off+1], types[off+2]
		k := &walkKinds[info>>24&0x7f]
		if off+uint(k.head)+uint(k.elem)*uint(info&0xffffff) > uint(len(types)) {
			break
		}
		starts[n] = uint32(off)
		kinds[info>>24&0x7f]++
		names, refs = max(names, name), max(refs, size&k.ref)
		named[numNamed] = namedType{w.first + TypeID(n), name}
		numNamed += int(k.named & ((name | -name) >> 31)) // counts if it has a name
		n++
		// off grows by constants, so the processor can start on the next type before it
		// knows the size of this one.
		off += hdrWords
		switch k.elem {
		case 2:
			for v := info & 0xffffff; v > 0; v-- {
				names, refs = max(names, types[off]), max(refs, types[off+1]&k.refs)
				off += 2
			}
		case 3:
			for v := info & 0xffffff; v > 0; v-- {
				names, refs = max(names, types[off]), max(refs, types[off+1]&k.refs)
				off += 3
			}
		}
	}
	w.off, w.n, w.numNamed, w.names, w.refs = off, n, numNamed, names, refs
}

// step reads one type of any kind.
func (w *walker) step(layouts []byte) error {
	rec := w.types[w.off:]
	if len(rec) < hdrWords {
		return errors.New("cut short")
	}
	name, kind, vlen := rec[0], Kind(rec[1]>>24&0x7f), rec[1]&0xffffff
	if kind == KindVoid {
		return errors.New("kind 0")
	}
	extra, elem, err := kindSize(layouts, kind)
	if err != nil {
		return err
	}
	need := 4*hdrWords + uint64(extra) + uint64(elem)*uint64(vlen)
	switch {
	case need > 4*uint64(len(rec)):
		return fmt.Errorf("%s with %d elements needs %d bytes, %d are left", kind, vlen, need, 4*len(rec))
	case need%4 != 0:
		return fmt.Errorf("%s of %d bytes, want a multiple of 4", kind, need)
	}
	w.note(rec)
	w.kinds[kind]++
	if kind.Shape().Named && name != 0 {
		w.named[w.numNamed] = namedType{w.first + TypeID(w.n), name}
		w.numNamed++
	}
	w.starts[w.n] = uint32(w.off)
	w.n++
	w.off += uint(need / 4)
	return nil
}

// note notes the names and types that a record refers to.
func (w *walker) note(rec []uint32) {
	shape := Kind(rec[1] >> 24 & 0x7f).Shape()
	word := func(kind Word, v uint32) {
		switch kind {
		case Name:
			w.names = max(w.names, v)
		case Ref:
			w.refs = max(w.refs, v)
		}
	}
	word(Name, rec[0])
	word(shape.Third, rec[2])
	rest := rec[hdrWords:]
	for i, kind := range shape.Extra {
		word(kind, rest[i])
	}
	if n := len(shape.Elem); n > 0 {
		for i, v := range rest[len(shape.Extra):][:n*int(rec[1]&0xffffff)] {
			word(shape.Elem[i%n], v)
		}
	}
}

// words returns the words of a type section: raw itself if it is aligned and has the
// byte order of this machine, otherwise a copy.
func (b *BTF) words(raw []byte) []uint32 {
	n := len(raw) / 4
	if n == 0 {
		return nil
	}
	if p := unsafe.Pointer(&raw[0]); b.big == bigMachine && uintptr(p)%4 == 0 {
		return unsafe.Slice((*uint32)(p), n)
	}
	b.own = slices.Grow(b.own[:0], n)[:n]
	order := b.Order()
	for i := range b.own {
		b.own[i] = order.Uint32(raw[4*i:])
	}
	return b.own
}

var bigMachine = binary.NativeEndian.Uint16([]byte{0, 1}) == 1
