package relolog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/btfgen/btfgen/internal/rawbtf"
)

var (
	errBitfield  = errors.New("bitfield needs a load of more than 64 bits")
	errArrayKind = errors.New("cannot be applied to an array element")
)

// value is what a relocation resolves to on one side.
type value struct {
	val uint64

	// Of a byte_off that is no bitfield: the size of the field in bytes and
	// its type, because loaders may change the width of a load.
	size   uint32
	typeID rawbtf.TypeID
	loads  bool

	bitfield bool // val is one of several right answers
}

// calc computes the value that s has by itself (bpf_core_calc_field_relo,
// _type_relo and _enumval_relo of libbpf).
func (s *spec) calc() (value, error) {
	switch {
	case s.kind.IsField():
		return s.fieldValue()
	case s.kind.IsEnumval():
		if s.kind == KindEnumvalExists {
			return value{val: 1}, nil
		}
		t := s.btf.Type(s.acc[0].typeID)
		return value{val: t.Enumerator(s.acc[0].idx).Value}, nil
	}
	switch s.kind {
	case KindLocalTypeID, KindTargetTypeID:
		return value{val: uint64(s.root)}, nil
	case KindTypeSize:
		n, err := s.btf.SizeOf(s.root)
		return value{val: uint64(n)}, err
	}
	return value{val: 1}, nil // type_exists, type_matches
}

func (s *spec) fieldValue() (value, error) {
	if s.kind == KindFieldExists {
		return value{val: 1}, nil
	}
	last := &s.acc[len(s.acc)-1]
	if last.name == "" {
		return s.elementValue(last)
	}
	t := s.btf.Type(last.typeID)
	m := t.Member(last.idx)
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
	v := value{bitfield: m.BitSize > 0}
	switch s.kind {
	case KindByteOffset:
		v.val = uint64(off)
		if !v.bitfield {
			v.size, v.typeID, v.loads = size, mt.ID, true
		}
	case KindByteSize:
		v.val = uint64(size)
	case KindSigned:
		if mt.Kind().IsAnyEnum() && mt.KindFlag() || mt.Kind() == rawbtf.KindInt && mt.IntEncoding()&rawbtf.IntSigned != 0 {
			v.val = 1
		}
	case KindLShiftU64:
		if s.btf.Order() == binary.LittleEndian {
			v.val = uint64(64 - (s.bitOff + bits - off*8))
		} else {
			v.val = uint64((8-size)*8 + (s.bitOff - off*8))
		}
	case KindRShiftU64:
		v.val = uint64(64 - bits)
	}
	return v, nil
}

// elementValue is the value of a spec that ends in an array element or in the
// root itself.
func (s *spec) elementValue(last *accessor) (value, error) {
	size, err := s.btf.SizeOf(last.typeID)
	switch {
	case err != nil:
		return value{}, err
	case s.kind == KindByteOffset:
		return value{val: uint64(s.bitOff / 8), size: size, typeID: last.typeID, loads: true}, nil
	case s.kind == KindByteSize:
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

// loadable reports whether a load or store of the field can be changed from
// the local size to the target's: both are pointers, or both are integers that
// zero-extension keeps right. Anything else libbpf poisons.
func loadable(l, t value, local, targ *rawbtf.BTF) bool {
	if l.size == t.size {
		return true
	}
	lt, tt := local.Type(l.typeID), targ.Type(t.typeID)
	switch {
	case lt.Kind() != tt.Kind():
		return false
	case lt.Kind() == rawbtf.KindPtr:
		return true
	case lt.Kind() == rawbtf.KindInt:
		return lt.IntEncoding() != rawbtf.IntSigned && tt.IntEncoding() != rawbtf.IntSigned
	}
	return false
}

// Classes and modes of BPF instructions.
const (
	classLD    = 0x00
	classLDX   = 0x01
	classST    = 0x02
	classSTX   = 0x03
	classALU   = 0x04
	classALU64 = 0x07
	ldImm64    = 0x18 // BPF_LD | BPF_IMM | BPF_DW
	srcX       = 0x08
)

// patch says what a loader would make of the instruction, given the values on
// both sides (bpf_core_patch_insn of libbpf): nothing to say, poison it, or
// give up with an error.
func (in *insn) patch(l, t value, local, targ *rawbtf.BTF) (poison string, err error) {
	if !in.ok {
		return "", nil
	}
	switch class := in.code & 7; class {
	case classLDX, classST, classSTX:
		if t.val > math.MaxInt16 {
			return "", fmt.Errorf("offset %d does not fit the instruction", t.val)
		}
		if l.loads && t.loads && !loadable(l, t, local, targ) {
			return fmt.Sprintf("load of %d bytes cannot become one of %d bytes", l.size, t.size), nil
		}
		if l.loads && t.loads && l.size != t.size && t.size != 1 && t.size != 2 && t.size != 4 && t.size != 8 {
			return "", fmt.Errorf("no load of %d bytes", t.size)
		}
	case classALU, classALU64:
		if in.code&srcX != 0 {
			return "", errors.New("instruction has no immediate operand")
		}
	case classLD:
		if in.code != ldImm64 {
			return "", errors.New("load has no 64-bit immediate operand")
		}
	default:
		return "", fmt.Errorf("instruction of class %d cannot be relocated", class)
	}
	return "", nil
}
