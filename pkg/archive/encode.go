// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"encoding/binary"

	"github.com/btfgen/btfgen/internal/btf/canonical"
	"github.com/btfgen/btfgen/internal/btfa"
)

// encoder writes the streams of a payload.
type encoder struct {
	streams [btfa.NumStreams][]byte
	names   map[string]uint64 // numbers of field names, in the order of their first use
}

func (e *encoder) put(stream int, vs ...uint64) {
	for _, v := range vs {
		e.streams[stream] = binary.AppendUvarint(e.streams[stream], v)
	}
}

func (e *encoder) putString(stream int, s string) {
	e.streams[stream] = append(append(e.streams[stream], s...), 0)
}

// kernels writes sorted keys: the length of the prefix that a key shares with the one
// before, which layout it has (0 is the next new one, 1 the newest, 2 the one before),
// and the rest of its text.
func (e *encoder) kernels(kernels []Kernel, layoutOf []int) {
	e.put(btfa.StreamKernels, uint64(len(kernels)))
	last, layouts := "", 0
	for i, k := range kernels {
		s := btfa.KeyText(k.Key)
		n := 0
		for n < len(s) && n < len(last) && s[n] == last[n] {
			n++
		}
		e.put(btfa.StreamKernels, uint64(n), uint64(layouts-layoutOf[i]))
		e.putString(btfa.StreamKernels, s[n:])
		if layoutOf[i] == layouts {
			layouts++
		}
		last = s
	}
}

// pool writes names, shapes, parents and numbers.
func (e *encoder) pool(ctx context.Context, p *pool) error {
	e.put(btfa.StreamParents, uint64(len(p.slots)))
	last := ""
	for _, s := range p.slots {
		if s.name == last {
			e.putString(btfa.StreamNames, "") // the name of the slot before
		} else {
			e.putString(btfa.StreamNames, s.name)
		}
		last = s.name
	}
	for i := range p.slots {
		s := &p.slots[i]
		e.put(btfa.StreamParents, uint64(len(s.variants)))
		for j := range s.variants {
			if err := ctx.Err(); err != nil {
				return err
			}
			back, deltas := s.parent(j)
			e.put(btfa.StreamParents, uint64(back))
			if back == 0 {
				e.shape(s.variants[j].shape)
			}
			e.streams[btfa.StreamNumbers] = append(e.streams[btfa.StreamNumbers], deltas...)
		}
	}
	return nil
}

// parent chooses the parent of variant j: the one with the same shape for which the
// deltas of the numbers take the fewest bytes. It returns its distance, 0 for none,
// and the deltas.
func (s *slot) parent(j int) (back int, deltas []byte) {
	v := &s.variants[j]
	for k := 1; k <= min(j, maxParentVariants); k++ {
		o := &s.variants[j-k]
		if !o.sameShape(v) {
			continue
		}
		if d := appendDeltas(nil, v, o.numbers); back == 0 || len(d) < len(deltas) {
			back, deltas = k, d
		}
	}
	if back == 0 {
		deltas = appendDeltas(nil, v, make([]uint64, len(v.numbers)))
	}
	return back, deltas
}

// appendDeltas appends the numbers of v as deltas against base. When a member moves,
// the members after it mostly move by the same distance. So it writes how much further
// each number moved than the number before it in its type.
func appendDeltas(b []byte, v *variant, base []uint64) []byte {
	at := 0
	for i := range v.shape {
		t := &v.shape[i]
		last := uint64(0)
		eachNumber(t, func(uint64, bool) uint64 {
			shift := v.numbers[at] - base[at]
			if d := int64(shift - last); t.Kind.IsComposite() {
				b = binary.AppendUvarint(b, btfa.PackOffset(d))
			} else {
				b = binary.AppendUvarint(b, btfa.Zigzag(d))
			}
			last = shift
			at++
			return 0
		})
	}
	return b
}

func (e *encoder) shape(types []canonical.Type) {
	next := 1 // the first node without a reference to it
	putRef := func(r int) {
		v := btfa.ToFirst + 2*uint64(r)
		switch {
		case r == canonical.Void:
			v = btfa.ToVoid
		case r < canonical.Void:
			v = btfa.ToFirst + 1 + 2*uint64(refSlot(r))
		case r == next:
			v = btfa.ToNext
			next++
		}
		e.put(btfa.StreamShapes, v)
	}
	for i := range types {
		t := &types[i]
		head := uint64(t.Kind) << 1
		if t.Flag {
			head |= 1
		}
		e.put(btfa.StreamShapes, head)
		named, _ := fieldsOf(t.Kind)
		if named {
			e.put(btfa.StreamShapes, uint64(len(t.Fields)))
		}
		n := t.Kind.Shape().Refs(0)
		for _, r := range t.Refs[:n] {
			putRef(r)
		}
		for j := 0; named && j < len(t.Fields); j++ {
			e.name(t.Fields[j].Name)
			if hasBits(t) {
				e.put(btfa.StreamShapes, uint64(t.Fields[j].Lo>>24))
			}
			if len(t.Refs) > n {
				putRef(t.Refs[n+j])
			}
		}
	}
}

func (e *encoder) name(s string) {
	if s == "" {
		e.put(btfa.StreamShapes, btfa.NameNone)
		return
	}
	if n, ok := e.names[s]; ok {
		e.put(btfa.StreamShapes, btfa.NameFirst+n)
		return
	}
	e.names[s] = uint64(len(e.names))
	e.put(btfa.StreamShapes, btfa.NameNext)
	e.putString(btfa.StreamNames, s)
}

// layouts writes each layout as changes to its parent.
func (e *encoder) layouts(ctx context.Context, p *pool) error {
	known := make([]int32, len(p.slots)) // how many variants of a slot earlier layouts have
	e.put(btfa.StreamLayouts, uint64(len(p.layouts)))
	for i, l := range p.layouts {
		if err := ctx.Err(); err != nil {
			return err
		}
		head := uint64(0)
		if l.parent >= 0 {
			head = uint64(i-int(l.parent)) << 1
		}
		if l.bigEndian {
			head |= 1
		}
		e.put(btfa.StreamLayouts, head, uint64(len(l.changes)))
		next := int32(0)
		for _, ch := range l.changes {
			v := btfa.VariantFirst + uint64(ch.variant)
			switch ch.variant {
			case btfa.NoVariant:
				v = btfa.VariantNone
			case known[ch.slot]:
				v = btfa.VariantNext
				known[ch.slot]++
			}
			e.put(btfa.StreamLayouts, uint64(ch.slot-next), v)
			next = ch.slot + 1
		}
	}
	return nil
}
