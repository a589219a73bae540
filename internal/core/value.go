// SPDX-License-Identifier: Apache-2.0

package core

import (
	"encoding/binary"
	"fmt"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/pkg/relo"
)

var (
	errBitfield  error = fault{Cause: relo.CauseWideBitfield}
	errArrayKind error = fault{Cause: relo.CauseElement}
)

// value is what a relocation resolves to on one side.
type value struct {
	val   uint64
	load  load
	exact bool // local side only: the operand has to be equal
}

// load is the size and the class of a field that an instruction loads or stores.
// The zero value is none, as for all kinds but byte_off and for bitfields.
type load struct {
	size uint32 // bytes; of an array, of its innermost elements
	kind btf.Kind
	enc  uint8 // encoding, of an int
	ok   bool
}

// String returns "signed int of 8 bytes".
func (l load) String() string {
	enc := ""
	switch {
	case l.enc&btf.IntSigned != 0:
		enc = "signed "
	case l.enc&btf.IntBool != 0:
		enc = "bool "
	case l.enc&btf.IntChar != 0:
		enc = "char "
	}
	if l.kind == btf.KindArray {
		return fmt.Sprintf("array with elements of %d bytes", l.size)
	}
	return fmt.Sprintf("%s%s of %d bytes", enc, l.kind, l.size)
}

// loadOf returns the load of a field of type id, which has this size and no
// modifiers. For an array the size of an element counts, as in libbpf since 1.6.
func (s *spec) loadOf(size uint32, id btf.TypeID) (load, error) {
	t := s.btf.Type(id)
	l := load{size: size, kind: t.Kind(), ok: true}
	switch l.kind {
	case btf.KindInt:
		l.enc = uint8(t.IntEncoding())
	case btf.KindArray:
		t = element(s.btf, id)
		var err error
		if l.size, err = s.btf.SizeOf(t.ID); err != nil {
			return load{}, err
		}
	}
	return l, nil
}

// calc computes the value of a kind that s has by itself
// (bpf_core_calc_field_relo, _type_relo and _enumval_relo of libbpf).
func (s *spec) calc(kind relo.Kind) (value, error) {
	switch {
	case kind.IsField():
		return s.fieldValue(kind)
	case kind.IsEnumval():
		if kind == relo.EnumvalExists {
			return value{val: 1}, nil
		}
		return value{val: s.btf.Type(s.acc[0].typeID).Enumerator(s.acc[0].idx).Value}, nil
	}
	switch kind {
	case relo.LocalTypeID, relo.TargetTypeID:
		return value{val: uint64(s.root)}, nil
	case relo.TypeSize:
		n, err := s.btf.SizeOf(s.root)
		return value{val: uint64(n)}, err
	}
	return value{val: 1}, nil // type_exists, type_matches
}

// exact reports whether the operand has to be the local value. Linkers change type
// IDs, and compilers differ on how to load a bitfield.
func (s *spec) exact() bool {
	switch s.kind {
	case relo.LocalTypeID, relo.TargetTypeID:
		return false
	case relo.ByteOffset, relo.ByteSize, relo.LShiftU64:
		last := &s.acc[len(s.acc)-1]
		return last.name == "" || s.btf.Type(last.typeID).Member(last.idx).BitSize == 0
	}
	return true
}

func (s *spec) fieldValue(kind relo.Kind) (value, error) {
	if kind == relo.FieldExists {
		return value{val: 1}, nil
	}
	last := &s.acc[len(s.acc)-1]
	if last.name == "" {
		return s.elementValue(kind, last)
	}
	m := s.btf.Type(last.typeID).Member(last.idx)
	mt, ok := s.btf.SkipMods(m.Type)
	if !ok {
		return value{}, errNesting
	}
	size, off, bits := mt.Size(), s.bitOff/8, m.BitSize
	if bits > 0 {
		var err error
		if size, off, err = bitfieldLoad(s.bitOff, bits, size); err != nil {
			return value{}, err
		}
	} else {
		var err error
		if size, err = s.btf.SizeOf(mt.ID); err != nil {
			return value{}, err
		}
		bits = size * 8
	}
	var v value
	switch kind {
	case relo.ByteOffset:
		v.val = uint64(off)
		if m.BitSize == 0 {
			l, err := s.loadOf(size, mt.ID)
			if err != nil {
				return value{}, err
			}
			v.load = l
		}
	case relo.ByteSize:
		v.val = uint64(size)
	case relo.Signed:
		if mt.Kind().IsAnyEnum() && mt.KindFlag() || mt.Kind() == btf.KindInt && mt.IntEncoding()&btf.IntSigned != 0 {
			v.val = 1
		}
	case relo.LShiftU64:
		if s.btf.Order() == binary.LittleEndian {
			v.val = uint64(64 - (s.bitOff + bits - off*8))
		} else {
			v.val = uint64((8-size)*8 + (s.bitOff - off*8))
		}
	case relo.RShiftU64:
		v.val = uint64(64 - bits)
	}
	return v, nil
}

// elementValue is the value of a spec that ends in an array element or the root.
func (s *spec) elementValue(kind relo.Kind, last *accessor) (value, error) {
	size, err := s.btf.SizeOf(last.typeID)
	switch {
	case err != nil:
		return value{}, err
	case kind == relo.ByteOffset:
		l, err := s.loadOf(size, last.typeID)
		return value{val: uint64(s.bitOff / 8), load: l}, err
	case kind == relo.ByteSize:
		return value{val: uint64(size)}, nil
	}
	return value{}, errArrayKind
}

// bitfieldLoad finds the smallest aligned load, starting from the size of the
// field's type, that covers the bitfield. It returns its size and offset in
// bytes.
func bitfieldLoad(bitOff, bits, size uint32) (uint32, uint32, error) {
	if size == 0 || size > 16 {
		return 0, 0, errBitfield
	}
	off := bitOff / 8 / size * size
	for bitOff+bits-off*8 > size*8 {
		if size >= 8 {
			return 0, 0, errBitfield
		}
		size *= 2
		off = bitOff / 8 / size * size
	}
	return size, off, nil
}

// localValue is the local value of a spec.
type localValue struct {
	value
	err error
}

// local returns the local value of s, or the error for which loaders refuse it.
func (s *spec) local() (v localValue) {
	if v.err = s.err; v.err == nil {
		v.value, v.err = s.calc(s.kind)
		v.exact = s.exact()
	}
	if v.err == nil && s.kind != relo.LocalTypeID && s.name() == "" {
		v.err = errAnon
	}
	return v
}
