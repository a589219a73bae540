// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/btf/canonical"
	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/pkg/kernel"
)

var (
	errOrder   = errors.New("not in order")
	errPrefix  = errors.New("shares more than the last key has")
	errLayout  = errors.New("layout does not exist")
	errSlot    = errors.New("slot does not exist")
	errVariant = errors.New("variant does not exist")
	errName    = errors.New("name does not exist")
	errNode    = errors.New("node does not exist")
	errRange   = errors.New("number is out of range")
	errItems   = fmt.Errorf("more than %d slots, variants, types, fields and references", btfa.MaxItems)
)

// maxFields is how many fields a type can have in BTF with 16-bit vlen.
const maxFields = math.MaxUint16

// decoder decodes the pool of an archive.
type decoder struct {
	*pool
	names   []string // names of slots, then of fields
	known   uint64   // names of fields that a shape has used
	items   int      // items so far, at most btfa.MaxItems
	shapes  *btfa.Cursor
	numbers *btfa.Cursor
	arena   []uint64 // the numbers of all variants
}

// take counts n items.
func (d *decoder) take(c *btfa.Cursor, n int) {
	if d.items += n; d.items > btfa.MaxItems {
		c.Fail(errItems)
	}
}

func (d *decoder) readNames(c *btfa.Cursor) {
	b := c.Rest()
	if n := len(b); n > 0 && b[n-1] != 0 {
		c.Fail(btfa.ErrCut)
		return
	}
	d.names = strings.Split(string(b), "\x00")
	d.names = d.names[:len(d.names)-1]
}

// readSlots reads the slots with their variants, which are in three streams.
func (d *decoder) readSlots(c *btfa.Cursor) {
	n := c.Count(len(d.names), "slots")
	if d.take(c, n); c.Err != nil {
		return
	}
	d.slots = make([]slot, n)
	d.arena = make([]uint64, 0, d.numbers.Len())
	for i := range d.slots {
		s := &d.slots[i]
		if s.name = d.names[i]; s.name == "" && i > 0 {
			s.name = d.slots[i-1].name
		}
	}
	for i := range d.slots {
		n := c.Count(c.Len(), "variants")
		if d.take(c, n); c.Err != nil {
			return
		}
		d.slots[i].variants = make([]variant, n)
		for j := range n {
			if d.readVariant(c, d.slots[i].variants[:j+1]); d.shapes.Err != nil || d.numbers.Err != nil {
				c.Rest() // report only the error of the other stream
				d.shapes.Rest()
				d.numbers.Rest()
				return
			}
			if c.Err != nil {
				return
			}
		}
	}
}

// readVariant reads the last of the variants of a slot.
func (d *decoder) readVariant(c *btfa.Cursor, variants []variant) {
	last := len(variants) - 1
	v, base := &variants[last], []uint64(nil)
	switch back := c.Uvarint(); {
	case c.Err != nil:
		return
	case back > uint64(last):
		c.Fail(errVariant)
		return
	case back > 0:
		parent := &variants[last-int(back)]
		v.shape, base = parent.shape, parent.numbers
	default:
		for nodes := 1; len(v.shape) < nodes && d.shapes.Err == nil; {
			v.shape = append(v.shape, d.readType(d.shapes, &nodes))
		}
	}
	if d.shapes.Err == nil {
		v.numbers = d.readNumbers(d.numbers, v.shape, base)
	}
}

// readType reads a type of a shape. nodes counts the types that the shape has
// according to the references so far.
func (d *decoder) readType(c *btfa.Cursor, nodes *int) (t canonical.Type) {
	head := c.Uvarint()
	t.Kind, t.Flag = btf.Kind(head>>1), head&1 != 0
	if head > math.MaxUint8 || !inArchive(t.Kind) {
		c.Fail(fmt.Errorf("minimized BTF has no kind %d", head>>1))
		return t
	}
	named, fields := fieldsOf(t.Kind)
	if named {
		fields = c.Count(min(maxFields, c.Len()), "fields")
		d.take(c, fields)
	}
	outside, refs := t.Kind.Shape().Refs(0), t.Kind.Shape().Refs(fields)
	if d.take(c, 1+refs); c.Err != nil {
		return t
	}
	t.Fields, t.Refs = make([]canonical.Field, fields), make([]int, refs)
	for i := range outside {
		t.Refs[i] = d.readRef(c, nodes)
	}
	for i := 0; named && i < fields && c.Err == nil; i++ {
		t.Fields[i].Name = d.readName(c)
		if hasBits(&t) {
			t.Fields[i].Lo = uint32(c.Count(math.MaxUint8, "bits")) << 24
		}
		if refs > outside {
			t.Refs[outside+i] = d.readRef(c, nodes)
		}
	}
	return t
}

func (d *decoder) readRef(c *btfa.Cursor, nodes *int) int {
	v := c.Uvarint()
	at := (v - btfa.ToFirst) / 2
	switch {
	case v == btfa.ToVoid:
		return canonical.Void
	case v == btfa.ToNext:
		*nodes++
		return *nodes - 1
	case v&1 == 0 && at >= uint64(*nodes):
		c.Fail(errNode)
	case v&1 != 0 && at >= uint64(len(d.slots)):
		c.Fail(errSlot)
	case v&1 != 0:
		return slotRef(int(at))
	}
	return int(at)
}

func (d *decoder) readName(c *btfa.Cursor) string {
	v := c.Uvarint()
	if v == btfa.NameNone {
		return ""
	}
	if v == btfa.NameNext {
		v = btfa.NameFirst + d.known
		d.known++
	}
	v -= btfa.NameFirst
	if v >= d.known || v >= uint64(len(d.names)-len(d.slots)) {
		c.Fail(errName)
		return ""
	}
	return d.names[len(d.slots)+int(v)]
}

// readNumbers reads the numbers of a variant as deltas against base, or against
// zeros if base is nil.
func (d *decoder) readNumbers(c *btfa.Cursor, shape []canonical.Type, base []uint64) []uint64 {
	start := len(d.arena)
	for i := range shape {
		t, shift := &shape[i], uint64(0)
		eachNumber(t, func(_ uint64, size bool) uint64 {
			if v := c.Uvarint(); t.Kind.IsComposite() {
				shift += uint64(btfa.UnpackOffset(v))
			} else {
				shift += uint64(btfa.Unzigzag(v))
			}
			x := shift
			if base != nil {
				x += base[len(d.arena)-start]
			}
			if c.Err == nil && !inRange(t, x, size) {
				c.Fail(errRange)
			}
			if c.Err == nil {
				d.arena = append(d.arena, x)
			}
			return 0
		})
		if c.Err != nil {
			return nil
		}
	}
	return d.arena[start:len(d.arena):len(d.arena)]
}

func (d *decoder) readLayouts(c *btfa.Cursor) {
	d.layouts = make([]layout, 0, c.Count(c.Len()/2, "layouts"))
	known := make([]int32, len(d.slots)) // how many variants of a slot earlier layouts have
	arena := make([]change, 0, c.Len()/2)
	for i := range int32(cap(d.layouts)) {
		head := c.Uvarint()
		l := layout{parent: -1, bigEndian: head&1 != 0}
		if back := head >> 1; back > uint64(i) {
			c.Fail(errLayout)
		} else if back > 0 {
			l.parent = i - int32(back)
		}
		start, slot := len(arena), uint64(0)
		for range c.Count(min(c.Len()/2, len(d.slots)), "changes") {
			slot += min(c.Uvarint(), math.MaxInt32)
			to := c.Uvarint()
			if c.Err == nil && slot >= uint64(len(d.slots)) {
				c.Fail(errSlot)
			}
			if c.Err != nil {
				return
			}
			ch := change{int32(slot), btfa.NoVariant}
			switch {
			case to == btfa.VariantNext && int(known[slot]) < len(d.slots[slot].variants):
				ch.variant = known[slot]
				known[slot]++
			case to >= btfa.VariantFirst && to-btfa.VariantFirst < uint64(known[slot]):
				ch.variant = int32(to - btfa.VariantFirst)
			case to != btfa.VariantNone:
				c.Fail(errVariant)
				return
			}
			arena = append(arena, ch)
			slot++
		}
		l.changes = arena[start:len(arena):len(arena)]
		d.layouts = append(d.layouts, l)
	}
}

func (a *Archive) readKernels(c *btfa.Cursor) {
	n := c.Count(min(btfa.MaxKernels, c.Len()), "kernels")
	a.keys, a.index = make([]kernel.Key, 0, n), make(map[kernel.Key]int, n)
	a.layoutOf = make([]int32, 0, n)
	last, total, layouts := "", 0, 0
	for i := range n {
		shared, back := c.Uvarint(), c.Uvarint()
		rest := c.Text()
		switch {
		case c.Err != nil:
			return
		case shared > uint64(len(last)):
			c.Fail(errPrefix)
			return
		case back > uint64(layouts):
			c.Fail(errLayout)
			return
		}
		s := last[:shared] + string(rest)
		layout := layouts - int(back)
		if layout == layouts {
			layouts++
		}
		k, err := btfa.ParseKey(s)
		switch total += len(s); {
		case total > btfa.MaxKeyBytes:
			err = fmt.Errorf("keys have more than %d bytes", btfa.MaxKeyBytes)
		case i > 0 && s <= last, layout >= len(a.pool.layouts):
			err = errOrder
		}
		if _, ok := a.index[k.Canonical()]; ok && err == nil {
			err = errors.New("occurs twice")
		}
		if err != nil {
			c.Fail(fmt.Errorf("kernel %q: %w", s, err))
			return
		}
		a.index[k.Canonical()] = i
		a.keys, a.layoutOf = append(a.keys, k), append(a.layoutOf, int32(layout))
		last = s
	}
	if layouts != len(a.pool.layouts) {
		c.Fail(fmt.Errorf("use %d of %d layouts", layouts, len(a.pool.layouts)))
	}
}
