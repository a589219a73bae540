package archive

import (
	"encoding/binary"
	"slices"

	"github.com/btfgen/btfgen/internal/rawbtf"
)

// encoder writes a payload.
type encoder struct {
	streams [numStreams][]byte
	names   map[string]uint64
}

func (e *encoder) put(stream int, vs ...uint64) {
	for _, v := range vs {
		e.streams[stream] = binary.AppendUvarint(e.streams[stream], v)
	}
}

func (e *encoder) putString(stream int, s string) {
	e.streams[stream] = append(append(e.streams[stream], s...), 0)
}

// pool writes names, shapes, parents and numbers.
func (e *encoder) pool(p *pool) {
	e.put(streamParents, uint64(len(p.slots)))
	for i := range p.slots {
		s := &p.slots[i]
		if s.ordinal == 0 {
			e.putString(streamNames, s.name)
		} else {
			e.putString(streamNames, "") // the name of the slot before
		}
	}
	for i := range p.slots {
		s := &p.slots[i]
		e.put(streamParents, uint64(len(s.variants)))
		for j := range s.variants {
			v := &s.variants[j]
			parent, deltas := s.parent(j)
			e.put(streamParents, uint64(parent))
			if parent == 0 {
				e.shape(p, v.nodes)
			}
			e.streams[streamNumbers] = append(e.streams[streamNumbers], deltas...)
		}
	}
}

// maxParents is how many variants back the writer looks for a parent.
const maxParents = 64

// parent chooses the variant of the same shape that variant j is told from
// with the fewest bytes. It returns how far back that is, 0 if there is none,
// and those bytes.
func (s *poolSlot) parent(j int) (int, []byte) {
	v := &s.variants[j]
	best, deltas := 0, []byte(nil)
	for k := 1; k <= min(j, maxParents); k++ {
		o := &s.variants[j-k]
		if o.shape != v.shape {
			continue
		}
		if d := appendDeltas(nil, v, o.nums); deltas == nil || len(d) < len(deltas) {
			best, deltas = k, d
		}
	}
	if best == 0 {
		deltas = appendDeltas(nil, v, make([]uint64, len(v.nums)))
	}
	return best, deltas
}

// appendDeltas appends the numbers of v as they differ from base. When a
// member moves, those after it mostly move as far, so what is written is how
// much further each number moved than the one before it in its node.
func appendDeltas(b []byte, v *variant, base []uint64) []byte {
	at := 0
	for i := range v.nodes {
		count, offsets := countNumbers(v.nodes[i].kind, len(v.nodes[i].fields))
		shift := uint64(0)
		for range count {
			s := v.nums[at] - base[at]
			if d := int64(s - shift); offsets {
				b = binary.AppendUvarint(b, packOffset(d))
			} else {
				b = binary.AppendUvarint(b, zigzag(d))
			}
			shift = s
			at++
		}
	}
	return b
}

// What a reference in a shape may be. From toFirst on, even numbers are nodes
// of the definition, odd ones slots.
const (
	toVoid  = 0
	toNext  = 1 // the first node that nothing refers to yet
	toFirst = 2
)

func (e *encoder) shape(p *pool, nodes []node) {
	known := 1
	putRef := func(r ref) {
		switch {
		case r.node == refVoid:
			e.put(streamShapes, toVoid)
		case r.node == refSlot:
			e.put(streamShapes, toFirst+1+2*uint64(p.index[*r.slot]))
		case r.node == known:
			known++
			e.put(streamShapes, toNext)
		default:
			e.put(streamShapes, toFirst+2*uint64(r.node))
		}
	}
	for i := range nodes {
		n := &nodes[i]
		flag := uint64(0)
		if n.flag {
			flag = 1
		}
		e.put(streamShapes, uint64(n.kind)<<1|flag)
		refs := n.refs
		switch n.kind {
		case rawbtf.KindStruct, rawbtf.KindUnion, rawbtf.KindEnum, rawbtf.KindEnum64:
			e.put(streamShapes, uint64(len(n.fields)))
		case rawbtf.KindFuncProto:
			e.put(streamShapes, uint64(len(n.fields)))
			putRef(refs[0])
			refs = refs[1:]
		case rawbtf.KindPtr, rawbtf.KindTypedef, rawbtf.KindArray:
			for _, r := range refs {
				putRef(r)
			}
			continue
		default:
			continue
		}
		for j, f := range n.fields {
			e.name(f.Name)
			if n.flag && n.kind.IsComposite() {
				e.put(streamShapes, uint64(f.Lo>>24))
			}
			if len(refs) > 0 {
				putRef(refs[j])
			}
		}
	}
}

// What the name of a field may be; from nameFirst on, it is one that was there.
const (
	nameNone  = 0
	nameNext  = 1
	nameFirst = 2
)

func (e *encoder) name(s string) {
	if s == "" {
		e.put(streamShapes, nameNone)
		return
	}
	if n, ok := e.names[s]; ok {
		e.put(streamShapes, nameFirst+n)
		return
	}
	e.names[s] = uint64(len(e.names))
	e.put(streamShapes, nameNext)
	e.putString(streamNames, s)
}

// What a change in a layout may put into a slot; from variantFirst on, it is
// a variant that was in a layout before.
const (
	variantNext  = 0 // the slot's first that no layout had yet
	variantNone  = 1
	variantFirst = 2
)

// layouts writes each layout as the changes that make it of an earlier one.
func (e *encoder) layouts(p *pool) {
	none := slices.Repeat([]int32{noVariant}, len(p.slots))
	made := make([]int32, len(p.slots))
	e.put(streamLayouts, uint64(len(p.layouts)))
	for i := range p.layouts {
		l := &p.layouts[i]
		parent, from := 0, none
		fewest := changes(none, l.variants, len(p.slots)+1)
		for k := 1; k <= i; k++ {
			o := p.layouts[i-k].variants
			if n := changes(o, l.variants, fewest); n < fewest {
				parent, from, fewest = k, o, n
			}
		}
		order := uint64(0)
		if l.bigEndian {
			order = 1
		}
		e.put(streamLayouts, uint64(parent)<<1|order, uint64(fewest))
		last := 0
		for s, v := range l.variants {
			if v == from[s] {
				continue
			}
			e.put(streamLayouts, uint64(s-last))
			last = s + 1
			switch {
			case v == noVariant:
				e.put(streamLayouts, variantNone)
			case v == made[s]:
				e.put(streamLayouts, variantNext)
				made[s]++
			default:
				e.put(streamLayouts, variantFirst+uint64(v))
			}
		}
	}
}

// changes counts the slots that differ, but not beyond limit.
func changes(a, b []int32, limit int) int {
	n := 0
	for i := range a {
		if a[i] != b[i] {
			if n++; n >= limit {
				break
			}
		}
	}
	return n
}
