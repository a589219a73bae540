package relolog

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/btfgen/btfgen/internal/rawbtf"
)

// Set is the distinct relocations of some objects of one byte order. Tracers
// repeat themselves: of tens of thousands of records a few hundred ask
// different questions. A Set is immutable and safe for many goroutines.
type Set struct {
	objects []setObject
	queries []query
	names   []string // essential names of the roots, distinct
	index   *rawbtf.Names
	order   binary.ByteOrder
}

// setObject is an object and, for each of its distinct specs in the order of
// their first record, the query that answers it.
type setObject struct {
	*Object
	query []int // -1 for specs that have no target side
}

// query is a question to a target: all relocations whose match depends upon
// the same things. Kinds of field relocations differ only in the value that
// they take from the match.
type query struct {
	spec  *spec // of one of them
	name  int
	kinds uint16 // bit set of Kind
}

// NewSet collects the distinct relocations of objects, which must be of one
// byte order. Objects without relocations add nothing.
func NewSet(objects ...*Object) (*Set, error) {
	s := new(Set)
	names := make(map[string]int)
	bySig := make(map[string]int)
	var sig []byte
	for _, o := range objects {
		if o.btf == nil {
			continue
		}
		if s.order == nil {
			s.order = o.order
		} else if s.order != o.order {
			return nil, fmt.Errorf("%s: byte order %s differs from that of %s", o.name, o.order, s.objects[0].name)
		}
		so := setObject{Object: o, query: make([]int, len(o.specs))}
		for i, sp := range o.specs {
			so.query[i] = -1
			name := sp.name()
			if sp.err != nil || name == "" || sp.kind == KindLocalTypeID {
				continue
			}
			if _, ok := names[name]; !ok {
				names[name] = len(s.names)
				s.names = append(s.names, name)
			}
			sig = sp.signature(sig[:0], name, len(s.objects))
			q, ok := bySig[string(sig)]
			if !ok {
				q = len(s.queries)
				bySig[string(sig)] = q
				s.queries = append(s.queries, query{spec: sp, name: names[name]})
			}
			s.queries[q].kinds |= 1 << sp.kind
			so.query[i] = q
		}
		s.objects = append(s.objects, so)
	}
	s.index = rawbtf.NewNames(s.names)
	return s, nil
}

// Len returns the number of distinct questions.
func (s *Set) Len() int { return len(s.queries) }

// Order returns the byte order of the objects, nil for an empty set.
func (s *Set) Order() binary.ByteOrder { return s.order }

// Asks reports whether a relocation is of kind k.
func (s *Set) Asks(k Kind) bool {
	for i := range s.queries {
		if s.queries[i].kinds&(1<<k) != 0 {
			return true
		}
	}
	return false
}

// HasName reports whether a relocation asks for types of this essential name.
func (s *Set) HasName(name string) bool { return s.index.Has(rawbtf.Essential(name)) }

// signature appends what the target side of a match depends upon: equal
// signatures match the same candidates with the same target specs. Types that
// are compared as a whole and in depth count as different in every object.
func (s *spec) signature(b []byte, name string, object int) []byte {
	b = append(b, byte(s.rootKind()), ' ')
	b = append(append(b, name...), ' ')
	switch {
	case s.kind == KindTypeMatches:
		b = fmt.Appendf(b, "m%d/%d", object, s.root)
	case s.kind.IsType():
		b = s.compatSignature(append(b, 't', byte(s.kind)), s.root, 0)
	case s.kind.IsEnumval():
		b = append(append(b, 'e'), rawbtf.Essential(s.acc[0].name)...)
	default:
		b = s.fieldSignature(append(b, 'r'), s.root)
		for _, a := range s.acc {
			if a.name == "" {
				b = strconv.AppendUint(append(b, '['), uint64(a.idx), 10)
				b = s.fieldSignature(append(b, ' '), a.typeID)
				continue
			}
			t := s.btf.Type(a.typeID)
			b = append(append(append(b, '.'), a.name...), ' ')
			b = s.fieldSignature(b, t.Member(a.idx).Type)
		}
	}
	return b
}

// fieldSignature appends what fieldsCompat looks at.
func (s *spec) fieldSignature(b []byte, id rawbtf.TypeID) []byte {
	for range maxLevel {
		t, ok := s.btf.SkipMods(id)
		if !ok {
			break
		}
		switch k := t.Kind(); {
		case k.IsComposite():
			return append(b, 's')
		case k == rawbtf.KindArray:
			b = append(b, 'a')
			id = t.Array().Elem
			continue
		case k.IsAnyEnum(), k == rawbtf.KindFwd:
			if b = append(b, 'w'); k.IsAnyEnum() {
				b[len(b)-1] = 'e'
			}
			return append(b, rawbtf.Essential(t.Name())...)
		case k == rawbtf.KindInt:
			return append(b, 'i', byte(t.IntOffset()))
		default:
			return append(b, 'k', byte(k))
		}
	}
	return append(b, '!')
}

// maxSignature bounds signatures, in bytes: a prototype can have itself for
// each of its parameters.
const maxSignature = 8 << 10

// compatSignature appends what typesCompat and compatLoose look at.
func (s *spec) compatSignature(b []byte, id rawbtf.TypeID, depth int) []byte {
	t, ok := s.btf.SkipMods(id)
	if !ok || depth > 8 || len(b) > maxSignature { // what is beyond is told apart by its ID
		return fmt.Appendf(b, "!%p/%d", s.btf, id)
	}
	b = append(b, byte(t.Kind()))
	switch t.Kind() {
	case rawbtf.KindInt:
		b = append(b, byte(t.IntOffset()))
	case rawbtf.KindPtr:
		b = s.compatSignature(b, t.Ref(), depth+1)
	case rawbtf.KindArray:
		b = s.compatSignature(b, t.Array().Index, depth+1)
		b = s.compatSignature(b, t.Array().Elem, depth+1)
	case rawbtf.KindFuncProto:
		b = strconv.AppendUint(b, uint64(t.Vlen()), 10)
		for i := range min(t.Vlen(), 64) {
			b = s.compatSignature(b, t.Param(i).Type, depth+1)
		}
		b = s.compatSignature(b, t.Ref(), depth+1)
		if t.Vlen() > 64 {
			b = fmt.Appendf(b, "!%p/%d", s.btf, id)
		}
	}
	return b
}
