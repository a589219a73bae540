// Package canon puts the types of a BTF into an order that depends on nothing
// but the types, and encodes them. The minimizer and the archive share it, so
// that what comes out of an archive has the bytes that went in.
package canon

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"slices"

	"github.com/btfgen/btfgen/internal/btfenc"
	"github.com/btfgen/btfgen/internal/limits"
)

// Type is a type of the output.
type Type struct {
	Kind   btfenc.Kind
	Flag   bool   // kind_flag
	Name   string // empty for anonymous types
	Size   uint32 // bytes; 0 where the record holds a reference instead
	Fields []Field
	Refs   []int // see below
	Copies int   // how many equal ones are wanted; 0 counts as 1
}

// Field is a member (Lo is bitfield size<<24 | bit offset with Flag, else the
// bit offset), an enumerator (Lo and Hi are its value), a parameter (no
// value), the encoding word of an INT, or the number of elements of an ARRAY.
type Field struct {
	Name   string
	Lo, Hi uint32
}

// Void in Refs stands for void, all else is a position in the list of types.
// The references are in the order in which the record has them (btfenc.Shape).
const Void = -1

// content appends all of o that does not refer to other types. Anonymous types
// sort before named ones, those by name, because newer libbpf looks names up by
// bisection.
func (o *Type) content(b []byte) []byte {
	if o.Name != "" {
		b = append(b, 1)
		b = append(append(b, o.Name...), 0)
	} else {
		b = append(b, 0)
	}
	flag := byte(0)
	if o.Flag {
		flag = 1
	}
	b = append(b, byte(o.Kind), flag)
	b = binary.BigEndian.AppendUint32(b, o.Size)
	b = binary.BigEndian.AppendUint32(b, uint32(len(o.Fields)))
	for _, f := range o.Fields {
		b = append(append(b, f.Name...), 0)
		b = binary.BigEndian.AppendUint32(b, f.Hi)
		b = binary.BigEndian.AppendUint32(b, f.Lo)
	}
	return b
}

// Merge makes types that cannot be told apart one, and puts them in their
// canonical order. It returns the types to write, their refs renumbered to
// positions in that order.
//
// Types are split into classes by their content, then again by the classes
// of what they refer to, until that tells no more of them apart. Classes are
// numbered by sorting, so the numbers do not depend on the order of the
// input.
//
// The error is that of the context.
func Merge(ctx context.Context, types []*Type) ([]*Type, error) {
	merged, _, err := merge(ctx, types, len(types)+1) // each round but the last finds a class
	return merged, err
}

// MergeWithin is Merge for types that nobody vouches for. It gives up, and
// reports false, when the types are not told apart after some rounds: long
// chains of equal types need as many as they have links.
func MergeWithin(types []*Type, rounds int) (merged []*Type, ok bool) {
	merged, ok, _ = merge(context.Background(), types, rounds)
	return merged, ok
}

func merge(ctx context.Context, types []*Type, rounds int) (merged []*Type, ok bool, err error) {
	meter := limits.NewMeter(ctx, math.MaxInt64, "")
	keys := make([][]byte, len(types))
	var b []byte // of all keys
	key := func(i, from int) { keys[i] = b[from:len(b):len(b)] }
	live := make([]int, 0, len(types))
	for i, o := range types {
		if o == nil {
			continue
		}
		live = append(live, i)
		from := len(b)
		b = o.content(b)
		key(i, from)
	}
	class := make([]int, len(types))
	for n := 0; ; rounds-- {
		classes := number(live, keys, class)
		if classes == n {
			break
		}
		if rounds == 0 {
			return nil, false, nil
		}
		n = classes
		b = b[:0]
		for _, i := range live {
			from := len(b)
			b = binary.BigEndian.AppendUint32(b, uint32(class[i]))
			for _, r := range types[i].Refs {
				c := 0
				if r != Void && types[r] != nil {
					c = class[r] + 1
				}
				b = binary.BigEndian.AppendUint32(b, uint32(c))
			}
			key(i, from)
			if !meter.Step(1 + len(types[i].Refs)) {
				return nil, false, meter.Err()
			}
		}
	}
	return representatives(types, live, class), true, nil
}

// number sorts live by key, sets class to the rank of each key, and returns how
// many different ones there are.
func number(live []int, keys [][]byte, class []int) (n int) {
	slices.SortFunc(live, func(a, b int) int { return bytes.Compare(keys[a], keys[b]) })
	for at, i := range live {
		if at > 0 && !bytes.Equal(keys[i], keys[live[at-1]]) {
			n++
		}
		class[i] = n
	}
	return min(n+1, len(live))
}

// representatives keeps one type of each class, or as many as were asked for,
// in the order of the classes.
func representatives(types []*Type, live, class []int) []*Type {
	var reps []*Type
	copies := make(map[int]int)
	for _, i := range live {
		c := class[i]
		for c >= len(reps) {
			reps = append(reps, nil)
		}
		if reps[c] == nil {
			reps[c] = types[i]
		}
		copies[c] += types[i].Copies
	}
	at := make([]int, len(reps)) // position of the first of each class
	var out []*Type
	for c, o := range reps {
		at[c] = len(out)
		for range max(1, copies[c]) {
			out = append(out, o)
		}
	}
	seen := make(map[*Type]bool)
	for _, o := range out {
		if seen[o] {
			continue
		}
		seen[o] = true
		o.Refs = slices.Clone(o.Refs)
		for j, r := range o.Refs {
			if r != Void {
				o.Refs[j] = at[class[r]]
			}
		}
	}
	return out
}

// Write encodes types in the byte order of the kernel.
func Write(types []*Type, order binary.ByteOrder) []byte {
	b := btfenc.NewBuilder(order)
	for _, o := range types {
		shape, refs := o.Kind.Shape(), o.Refs
		ref := func() (id uint32) {
			id, refs = uint32(refs[0]+1), refs[1:]
			return id
		}
		words, vlen := shape.Elem, len(o.Fields)
		if len(words) == 0 {
			words, vlen = shape.Extra, 0
		}
		third := o.Size
		if shape.Third == btfenc.Ref {
			third = ref()
		}
		b.Type(o.Name, o.Kind, o.Flag, vlen, third)
		for _, f := range o.Fields {
			values := [2]uint32{f.Lo, f.Hi}
			for _, w := range words {
				switch w {
				case btfenc.Name:
					b.Word(b.String(f.Name))
				case btfenc.Ref:
					b.Word(ref())
				default:
					b.Word(values[0])
					values[0] = values[1]
				}
			}
		}
	}
	return b.Bytes()
}
