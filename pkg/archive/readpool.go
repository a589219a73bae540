// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/btfa"
)

// readPool is the definitions of an archive. Lists are ranges of a few long
// slices, whose lengths the sizes of the streams limit.
type readPool struct {
	names    []string // of slots, then of fields
	slots    []readSlot
	variants []readVariant
	shapes   []readShape
	nodes    []readNode
	fields   []readField
	refs     []uint32 // as in the stream, with toNext replaced by the node it means
	numbers  []uint64
	known    uint32 // names of fields that a shape had so far
}

// readSlot is the variants of a slot, a range of readPool.variants.
type readSlot struct{ first, count int32 }

// readVariant has the numbers of its nodes at readPool.numbers[numbers:].
type readVariant struct{ shape, numbers uint32 }

// readShape is a range of readPool.nodes.
type readShape struct{ first, count uint32 }

// readNode is a type without numbers. How many references it has follows from
// its kind and number of fields.
type readNode struct {
	kind         btf.Kind
	flag         bool
	count        uint32 // of fields that have names
	fields, refs uint32 // where they start
}

// readField is the name of a member, enumerator or parameter, 0 for none, else
// counted from 1, and the size of a bitfield in bits.
type readField struct {
	name uint32
	bits uint8
}

var (
	errSlot    = errors.New("slot does not exist")
	errVariant = errors.New("variant does not exist")
	errName    = errors.New("name does not exist")
	errNode    = errors.New("node does not exist")
	errRange   = errors.New("number is out of range")
)

// maxFields is how many fields a type can have in BTF with 16-bit vlen.
const maxFields = math.MaxUint16

// readNames cuts the names apart.
func (p *readPool) readNames(c *btfa.Cursor) {
	b := c.Rest()
	if n := len(b); n > 0 && b[n-1] != 0 {
		c.Fail(btfa.ErrCut)
		return
	}
	p.names = strings.Split(string(b), "\x00")
	p.names = p.names[:len(p.names)-1]
}

// readSlots reads slots and their variants, which takes three streams.
func (p *readPool) readSlots(c, shapes, numbers *btfa.Cursor) {
	p.slots = make([]readSlot, c.Count(len(p.names), "slots"))
	for i := 1; i < len(p.slots); i++ {
		if p.names[i] == "" {
			p.names[i] = p.names[i-1]
		}
	}
	p.variants = make([]readVariant, 0, c.Len())
	p.numbers = make([]uint64, 0, numbers.Len())
	p.nodes = make([]readNode, 0, shapes.Len()/2+1) // one byte for itself, one for what refers to it
	p.fields = make([]readField, 0, shapes.Len())
	p.refs = make([]uint32, 0, shapes.Len())
	for i := range p.slots {
		s := &p.slots[i]
		s.first = int32(len(p.variants))
		s.count = int32(c.Count(c.Len(), "variants"))
		for j := range s.count {
			back := c.Uvarint()
			if c.Err != nil {
				return
			}
			v := readVariant{numbers: uint32(len(p.numbers))}
			var base []uint64
			switch {
			case back > uint64(j):
				c.Fail(errVariant)
				return
			case back > 0:
				parent := p.variants[len(p.variants)-int(back)]
				v.shape, base = parent.shape, p.numbers[parent.numbers:]
			default:
				v.shape = uint32(len(p.shapes))
				p.readShape(shapes)
			}
			if shapes.Err == nil {
				p.readNumbers(numbers, p.shapes[v.shape], base)
			}
			if shapes.Err != nil || numbers.Err != nil {
				c.Rest() // that error tells it all
				shapes.Rest()
				numbers.Rest()
				return
			}
			p.variants = append(p.variants, v)
		}
	}
}

// readShape appends a shape.
func (p *readPool) readShape(c *btfa.Cursor) {
	s := readShape{first: uint32(len(p.nodes))}
	todo := uint32(1)
	for ; s.count < todo && c.Err == nil; s.count++ {
		p.readNode(c, &todo)
	}
	p.shapes = append(p.shapes, s)
}

// readNode appends a node. todo counts the nodes of the shape that were
// referred to.
func (p *readPool) readNode(c *btfa.Cursor, todo *uint32) {
	head := c.Uvarint()
	n := readNode{kind: btf.Kind(head >> 1 & 0x7f), flag: head&1 != 0, fields: uint32(len(p.fields)), refs: uint32(len(p.refs))}
	if head > math.MaxUint8 {
		c.Fail(fmt.Errorf("kind %d is unknown", head>>1))
		return
	}
	perField := 0
	switch n.kind {
	case btf.KindInt, btf.KindFloat, btf.KindFwd:
	case btf.KindPtr, btf.KindTypedef, btf.KindVolatile, btf.KindConst, btf.KindRestrict, btf.KindTypeTag, btf.KindFunc, btf.KindVar:
		p.readRef(c, todo)
	case btf.KindArray:
		p.readRef(c, todo)
		p.readRef(c, todo)
	case btf.KindStruct, btf.KindUnion:
		n.count, perField = uint32(c.Count(min(maxFields, c.Len()/2), "members")), 1
	case btf.KindEnum, btf.KindEnum64:
		n.count = uint32(c.Count(min(maxFields, c.Len()), "enumerators"))
	case btf.KindFuncProto:
		n.count, perField = uint32(c.Count(min(maxFields, c.Len()/2), "parameters")), 1
		p.readRef(c, todo)
	default:
		c.Fail(fmt.Errorf("kind %d is none that minimized BTF has", n.kind))
	}
	for range n.count {
		f := readField{name: p.readName(c)}
		if n.flag && n.kind.IsComposite() {
			f.bits = uint8(c.Count(math.MaxUint8, "bits"))
		}
		if perField > 0 {
			p.readRef(c, todo)
		}
		if c.Err != nil {
			return
		}
		p.fields = append(p.fields, f)
	}
	p.nodes = append(p.nodes, n)
}

func (p *readPool) readRef(c *btfa.Cursor, todo *uint32) {
	v := c.Uvarint()
	switch {
	case v == btfa.ToVoid:
	case v == btfa.ToNext:
		v = btfa.ToFirst + 2*uint64(*todo)
		*todo++
	case v&1 == 0:
		if (v-btfa.ToFirst)/2 >= uint64(*todo) {
			c.Fail(errNode)
		}
	default:
		if (v-btfa.ToFirst)/2 >= uint64(len(p.slots)) {
			c.Fail(errSlot)
		}
	}
	if c.Err == nil {
		p.refs = append(p.refs, uint32(v))
	}
}

// readName returns the number of a field's name, from 1, or 0 for none.
func (p *readPool) readName(c *btfa.Cursor) uint32 {
	v := c.Uvarint()
	switch {
	case v == btfa.NameNone:
		return 0
	case v == btfa.NameNext:
		p.known++
		v = uint64(p.known)
	default:
		if v = v - btfa.NameFirst + 1; v > uint64(p.known) {
			c.Fail(errName)
			return 0
		}
	}
	if v += uint64(len(p.slots)); v > uint64(len(p.names)) {
		c.Fail(errName)
		return 0
	}
	return uint32(v)
}

// readNumbers appends the numbers of a variant, which are told from those of
// base, or from zero if that is nil.
func (p *readPool) readNumbers(c *btfa.Cursor, s readShape, base []uint64) {
	at := 0
	for i := range s.count {
		n := &p.nodes[s.first+i]
		count, offsets := btfa.CountNumbers(n.kind, int(n.count))
		shift := uint64(0)
		for j := range count {
			v := c.Uvarint()
			if c.Err != nil {
				return
			}
			if offsets {
				shift += uint64(btfa.UnpackOffset(v))
			} else {
				shift += uint64(btfa.Unzigzag(v))
			}
			x := shift
			if base != nil {
				x += base[at]
			}
			if !n.inRange(x, j == count-1) {
				c.Fail(errRange)
				return
			}
			p.numbers = append(p.numbers, x)
			at++
		}
	}
}

// inRange checks that a number fits where it goes: the last of a node is its
// size or the like, others belong to fields.
func (n *readNode) inRange(x uint64, last bool) bool {
	switch {
	case n.kind.IsComposite() && last:
		return x%8 == 0 && x/8 <= math.MaxUint32
	case n.kind.IsComposite() && n.flag, n.kind == btf.KindFunc:
		return x < 1<<24
	case n.kind == btf.KindEnum && !last:
		return x == uint64(int64(int32(x)))
	case n.kind == btf.KindEnum64 && !last:
		return true
	}
	return x <= math.MaxUint32
}
