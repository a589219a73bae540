package minimize

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/rawbtf"
)

// content appends all of o that does not refer to other types. Anonymous types
// sort before named ones, those by name, because newer libbpf looks names up by
// bisection.
func (o *outType) content(b []byte) []byte {
	if o.name != "" {
		b = append(b, 1)
		b = append(append(b, o.name...), 0)
	} else {
		b = append(b, 0)
	}
	flag := byte(0)
	if o.flag {
		flag = 1
	}
	b = append(b, byte(o.kind), flag)
	b = binary.BigEndian.AppendUint32(b, o.size)
	b = binary.BigEndian.AppendUint32(b, uint32(len(o.words)))
	for _, f := range o.words {
		b = append(append(b, f.name...), 0)
		b = binary.BigEndian.AppendUint32(b, f.hi)
		b = binary.BigEndian.AppendUint32(b, f.lo)
	}
	return b
}

// merge makes types that cannot be told apart one, and puts them in their
// canonical order. It returns the types to write, their refs renumbered to
// positions in that order.
//
// Types are split into classes by their content, then again by the classes
// of what they refer to, until that tells no more of them apart. Classes are
// numbered by sorting, so the numbers do not depend on the order of the
// input.
func merge(types []*outType) []*outType {
	keys := make([]string, len(types))
	var b []byte
	live := make([]int, 0, len(types))
	for i, o := range types {
		if o == nil {
			continue
		}
		live = append(live, i)
		b = o.content(b[:0])
		keys[i] = string(b)
	}
	class := make([]int, len(types))
	for n := 0; ; {
		classes := number(live, keys, class)
		if classes == n {
			break
		}
		n = classes
		for _, i := range live {
			b = binary.BigEndian.AppendUint32(b[:0], uint32(class[i]))
			for _, r := range types[i].refs {
				c := 0
				if r != void && types[r] != nil {
					c = class[r] + 1
				}
				b = binary.BigEndian.AppendUint32(b, uint32(c))
			}
			keys[i] = string(b)
		}
	}
	return representatives(types, live, class)
}

// number sets class to the rank of each key and returns how many there are.
func number(live []int, keys []string, class []int) int {
	uniq := make(map[string]int, len(live))
	var order []string
	for _, i := range live {
		if _, ok := uniq[keys[i]]; !ok {
			uniq[keys[i]] = 0
			order = append(order, keys[i])
		}
	}
	slices.SortFunc(order, strings.Compare)
	for rank, k := range order {
		uniq[k] = rank
	}
	for _, i := range live {
		class[i] = uniq[keys[i]]
	}
	return len(order)
}

// representatives keeps one type of each class, or as many as were asked for,
// in the order of the classes.
func representatives(types []*outType, live, class []int) []*outType {
	var reps []*outType
	copies := make(map[int]int)
	for _, i := range live {
		c := class[i]
		for c >= len(reps) {
			reps = append(reps, nil)
		}
		if reps[c] == nil {
			reps[c] = types[i]
		}
		copies[c] += types[i].copies
	}
	at := make([]int, len(reps)) // position of the first of each class
	var out []*outType
	for c, o := range reps {
		at[c] = len(out)
		for range max(1, copies[c]) {
			out = append(out, o)
		}
	}
	seen := make(map[*outType]bool)
	for _, o := range out {
		if seen[o] {
			continue
		}
		seen[o] = true
		o.refs = slices.Clone(o.refs)
		for j, r := range o.refs {
			if r != void {
				o.refs[j] = at[class[r]]
			}
		}
	}
	return out
}

// write encodes types in the byte order of the kernel.
func write(types []*outType, order binary.ByteOrder) []byte {
	b := rawbtf.NewBuilder(order)
	id := func(r int) uint32 { return uint32(r + 1) }
	for _, o := range types {
		vlen, size := len(o.words), o.size
		switch o.kind {
		case rawbtf.KindInt, rawbtf.KindArray:
			vlen = 0
		case rawbtf.KindPtr, rawbtf.KindTypedef, rawbtf.KindFuncProto:
			size = id(o.refs[0])
		}
		b.Type(o.name, o.kind, o.flag, vlen, size)
		for i, f := range o.words {
			switch o.kind {
			case rawbtf.KindInt:
				b.Word(f.lo)
			case rawbtf.KindArray:
				b.Word(id(o.refs[0]), id(o.refs[1]), f.lo)
			case rawbtf.KindStruct, rawbtf.KindUnion:
				b.Word(b.String(f.name), id(o.refs[i]), f.lo)
			case rawbtf.KindEnum:
				b.Word(b.String(f.name), f.lo)
			case rawbtf.KindEnum64:
				b.Word(b.String(f.name), f.lo, f.hi)
			case rawbtf.KindFuncProto:
				b.Word(b.String(f.name), id(o.refs[i+1]))
			}
		}
	}
	return b.Bytes()
}
