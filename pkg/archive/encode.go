// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"encoding/binary"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/btfa"
)

// encoder writes a payload.
type encoder struct {
	streams [btfa.NumStreams][]byte
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
func (e *encoder) pool(ctx context.Context, p *pool) error {
	e.put(btfa.StreamParents, uint64(len(p.slots)))
	for i := range p.slots {
		s := &p.slots[i]
		if s.ordinal == 0 {
			e.putString(btfa.StreamNames, s.name)
		} else {
			e.putString(btfa.StreamNames, "") // the name of the slot before
		}
	}
	for i := range p.slots {
		s := &p.slots[i]
		e.put(btfa.StreamParents, uint64(len(s.variants)))
		for j := range s.variants {
			if err := ctx.Err(); err != nil {
				return err
			}
			v := &s.variants[j]
			parent, deltas := s.parent(j)
			e.put(btfa.StreamParents, uint64(parent))
			if parent == 0 {
				e.shape(p, v.nodes)
			}
			e.streams[btfa.StreamNumbers] = append(e.streams[btfa.StreamNumbers], deltas...)
		}
	}
	return nil
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
		count, offsets := btfa.CountNumbers(v.nodes[i].kind, len(v.nodes[i].fields))
		shift := uint64(0)
		for range count {
			s := v.nums[at] - base[at]
			if d := int64(s - shift); offsets {
				b = binary.AppendUvarint(b, btfa.PackOffset(d))
			} else {
				b = binary.AppendUvarint(b, btfa.Zigzag(d))
			}
			shift = s
			at++
		}
	}
	return b
}

func (e *encoder) shape(p *pool, nodes []node) {
	known := 1
	putRef := func(r ref) {
		switch {
		case r.node == refVoid:
			e.put(btfa.StreamShapes, btfa.ToVoid)
		case r.node == refSlot:
			e.put(btfa.StreamShapes, btfa.ToFirst+1+2*uint64(p.index[*r.slot]))
		case r.node == known:
			known++
			e.put(btfa.StreamShapes, btfa.ToNext)
		default:
			e.put(btfa.StreamShapes, btfa.ToFirst+2*uint64(r.node))
		}
	}
	for i := range nodes {
		n := &nodes[i]
		flag := uint64(0)
		if n.flag {
			flag = 1
		}
		e.put(btfa.StreamShapes, uint64(n.kind)<<1|flag)
		refs := n.refs
		switch n.kind {
		case btf.KindStruct, btf.KindUnion, btf.KindEnum, btf.KindEnum64:
			e.put(btfa.StreamShapes, uint64(len(n.fields)))
		case btf.KindFuncProto:
			e.put(btfa.StreamShapes, uint64(len(n.fields)))
			putRef(refs[0])
			refs = refs[1:]
		default:
			for _, r := range refs {
				putRef(r)
			}
			continue
		}
		for j, f := range n.fields {
			e.name(f.Name)
			if n.flag && n.kind.IsComposite() {
				e.put(btfa.StreamShapes, uint64(f.Lo>>24))
			}
			if len(refs) > 0 {
				putRef(refs[j])
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

// layouts writes each layout as the changes that make it of an earlier one.
func (e *encoder) layouts(ctx context.Context, p *pool) error {
	search := newLayoutSearch(p)
	made := make([]int32, len(p.slots))
	e.put(btfa.StreamLayouts, uint64(len(p.layouts)))
	for i := range p.layouts {
		if err := ctx.Err(); err != nil {
			return err
		}
		l := &p.layouts[i]
		parent, from, fewest := search.parent(i)
		order := uint64(0)
		if l.bigEndian {
			order = 1
		}
		e.put(btfa.StreamLayouts, uint64(parent)<<1|order, uint64(fewest))
		last := 0
		for s, v := range l.variants {
			if v == from[s] {
				continue
			}
			e.put(btfa.StreamLayouts, uint64(s-last))
			last = s + 1
			switch {
			case v == btfa.NoVariant:
				e.put(btfa.StreamLayouts, btfa.VariantNone)
			case v == made[s]:
				e.put(btfa.StreamLayouts, btfa.VariantNext)
				made[s]++
			default:
				e.put(btfa.StreamLayouts, btfa.VariantFirst+uint64(v))
			}
		}
	}
	return nil
}
