// SPDX-License-Identifier: Apache-2.0

package btfa

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/fnv"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/pkg/relo"
)

// FingerprintSize is the number of bytes of a fingerprint.
const FingerprintSize = 4

// maxHashed is the number of bytes that a fingerprint hashes at most; an object of 35,000 records has 30 kB of them.
const maxHashed = 16 << 20

// Fingerprint returns the fingerprint of a BPF object: a hash of its distinct relocations. It depends on names and
// kinds of types, but not on code, type IDs, or the order of relocations and members. docs/archive-format.md defines
// it, so it must not change.
func Fingerprint(object []byte) ([]byte, error) {
	hashes, big, err := hashRelocations(object)
	if err != nil {
		return nil, err
	}
	return combine(hashes, big), nil
}

// NoRelocations reports whether a fingerprint is that of objects without relocations.
func NoRelocations(fingerprint []byte) bool {
	return bytes.Equal(fingerprint, combine(nil, false)) || bytes.Equal(fingerprint, combine(nil, true))
}

// combine returns the fingerprint for the hashes of relocations.
func combine(hashes []uint64, big bool) []byte {
	h := fnv.New64a()
	if big {
		h.Write([]byte{'B'})
	} else {
		h.Write([]byte{'L'})
	}
	slices.Sort(hashes)
	for _, v := range slices.Compact(hashes) {
		h.Write(binary.LittleEndian.AppendUint64(nil, v))
	}
	sum := h.Sum64()
	return binary.LittleEndian.AppendUint32(nil, uint32(sum>>32)^uint32(sum))
}

// hashRelocations returns the hash of each relocation record that depends on the kernel, and whether the object is
// big-endian.
func hashRelocations(object []byte) (hashes []uint64, big bool, err error) {
	s, err := newSections(object)
	if err != nil {
		return nil, false, fmt.Errorf("not a BPF object: %w", err)
	}
	big = s.order == binary.BigEndian
	types, ext := s.find(".BTF"), s.find(".BTF.ext")
	if len(types) == 0 || len(ext) == 0 || s.err != nil {
		return nil, big, s.err
	}
	h := relocationHasher{h: fnv.New64a()}
	if h.types, err = btf.New(types, nil); err != nil {
		return nil, big, err
	}
	x, err := btf.NewExt(ext, h.types)
	if err != nil {
		return nil, big, err
	}
	seen := make(map[btf.CoreRecord]bool)
	err = x.Read(btf.ExtCore, func(_, records []byte, size int) error {
		for ; len(records) > 0; records = records[size:] {
			r := x.CoreRecord(records)
			r.Off = 0
			if !seen[r] && r.Kind != uint32(relo.LocalTypeID) {
				seen[r] = true
				hashes = append(hashes, h.record(r))
			}
		}
		return nil
	})
	if h.hashed > maxHashed {
		err = errors.New("relocations of too many types")
	}
	return hashes, big, err
}

// elfSections finds the sections of a 64-bit ELF file. debug/elf would make each tracer 240 kB larger.
type elfSections struct {
	data  []byte
	order binary.ByteOrder
	table []byte // section headers
	names []byte
	err   error // set by find
}

const elfHeader, sectionHeader = 64, 64 // bytes

func newSections(data []byte) (*elfSections, error) {
	if len(data) < elfHeader || string(data[:5]) != "\x7fELF\x02" {
		return nil, errors.New("no 64-bit ELF file")
	}
	s := &elfSections{data: data, order: binary.LittleEndian}
	if data[5] == 2 {
		s.order = binary.BigEndian
	}
	n := uint64(s.order.Uint16(data[60:]))
	s.table = s.part(s.order.Uint64(data[40:]), n*sectionHeader)
	names := uint64(s.order.Uint16(data[62:]))
	if s.order.Uint16(data[58:]) != sectionHeader || names >= n || s.table == nil {
		return nil, errors.New("damaged section headers")
	}
	if s.names = s.content(s.table[names*sectionHeader:]); len(s.names) == 0 || s.names[len(s.names)-1] != 0 {
		return nil, errors.New("damaged names of sections")
	}
	return s, nil
}

// part returns size bytes at off, nil if the file ends before.
func (s *elfSections) part(off, size uint64) []byte {
	if n := uint64(len(s.data)); off > n || size > n-off {
		return nil
	}
	return s.data[off:][:size]
}

// content returns the content of a section by its header.
func (s *elfSections) content(header []byte) []byte {
	return s.part(s.order.Uint64(header[24:]), s.order.Uint64(header[32:]))
}

// find returns the content of the first section with a name, nil without one. It sets s.err if it cannot be read.
func (s *elfSections) find(name string) []byte {
	for t := s.table; len(t) > 0; t = t[sectionHeader:] {
		at := int64(s.order.Uint32(t))
		if at < int64(len(s.names)) && bytes.HasPrefix(s.names[at:], []byte(name+"\x00")) {
			const noBits, compressed = 8, 1 << 11
			b := s.content(t)
			if b == nil || s.order.Uint32(t[4:]) == noBits || s.order.Uint64(t[8:])&compressed != 0 {
				s.err = fmt.Errorf("%s: outside of the file, or compressed", name)
			}
			return b
		}
	}
	return nil
}

// relocationHasher hashes relocations of one object.
type relocationHasher struct {
	types  *btf.BTF
	h      hash.Hash64
	hashed int // bytes
}

func (h *relocationHasher) put(b ...byte) {
	h.hashed += len(b)
	h.h.Write(b)
}

func (h *relocationHasher) putWord(v uint32) {
	h.put(byte(v), byte(v>>8), byte(v>>16), byte(v>>24))
}

// putName hashes a name and a NUL byte.
func (h *relocationHasher) putName(off uint32) {
	h.put(h.types.Name(off)...)
	h.put(0)
}

// record returns the hash of a record: its kind, kind and name of the local type, and what the kind of the relocation
// depends on.
func (h *relocationHasher) record(r btf.CoreRecord) uint64 {
	h.h.Reset()
	if h.hashed > maxHashed {
		return 0
	}
	root := h.types.Type(r.Type)
	h.putWord(r.Kind)
	h.put(byte(root.Kind()))
	h.putName(root.NameOff)
	switch kind := relo.Kind(r.Kind); {
	case kind.IsType():
		h.putName(r.Access)
		h.structure(r.Type, kind == relo.TypeMatches)
	case !h.path(r.Type, string(h.types.Name(r.Access))):
		h.put('!') // loaders refuse it
	}
	return h.h.Sum64()
}

// path hashes the names and elements on an access string, each with what loaders compare of its type.
func (h *relocationHasher) path(root btf.TypeID, access string) bool {
	t, ok := h.types.SkipMods(root)
	for i, text := range strings.Split(access, ":") {
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil || !ok {
			return false
		}
		idx := uint32(n)
		next := t.ID
		switch k := t.Kind(); {
		case k.IsAnyEnum() && i == 0 && idx < t.Vlen():
			h.putName(t.Enumerator(idx).NameOff)
			return true
		case i == 0:
			h.put('[')
			h.putWord(idx)
		case k == btf.KindArray && (t.Array().Nelems == 0 || idx < t.Array().Nelems):
			next = t.Array().Elem
			h.put('[')
			h.putWord(idx)
		case k.IsComposite() && idx < t.Vlen():
			m := t.Member(idx)
			next = m.Type
			h.put('.', byte(min(m.BitSize, 1)))
			h.putName(m.NameOff)
		default:
			return false
		}
		h.value(next)
		t, ok = h.types.SkipMods(next)
	}
	return ok
}

// value hashes what loaders compare of the type of a field: the kind, and the name of an enum. Of an array they compare
// the elements.
func (h *relocationHasher) value(id btf.TypeID) {
	t, ok := h.types.SkipMods(id)
	for n := 0; ok && t.Kind() == btf.KindArray && n < maxArrays; n++ {
		h.put(byte(btf.KindArray))
		t, ok = h.types.SkipMods(t.Array().Elem)
	}
	h.put(byte(t.Kind()))
	if !usual(&t) {
		h.putWord(t.Size())
	}
	if t.Kind().IsAnyEnum() || t.Kind() == btf.KindFwd {
		h.putName(t.NameOff)
	}
}

// usual reports whether a type is as compilers emit it: integers and enums have an alignment, and integers start at bit
// 0 and fill their bytes. Loaders treat these alike, whatever their size.
func usual(t *btf.Type) bool {
	switch k := t.Kind(); {
	case k == btf.KindInt && t.IntData()&0xffffff != 8*t.Size():
		return false
	case k == btf.KindInt || k.IsAnyEnum():
		return bits.OnesCount32(t.Size()) == 1
	}
	return true
}

// maxArrays is how many arrays of arrays value follows.
const maxArrays = 32

// structure hashes a type and, in the order in which they are first referred to, all types that it leads to: through
// pointers, arrays and parameters, and with members also through members.
func (h *relocationHasher) structure(root btf.TypeID, members bool) {
	number := make(map[btf.TypeID]uint32)
	var list []btf.Type
	ref := func(id btf.TypeID) {
		t, _ := h.types.SkipMods(id)
		n, ok := number[t.ID]
		if !ok {
			n = uint32(len(list))
			number[t.ID] = n
			list = append(list, t)
		}
		h.putWord(n)
	}
	ref(root)
	for i := 0; i < len(list) && h.hashed <= maxHashed; i++ {
		t := list[i]
		k := t.Kind()
		h.put(byte(k))
		if members {
			h.putName(t.NameOff)
		}
		switch {
		case k == btf.KindInt:
			h.putWord(t.IntData())
			h.putWord(t.Size())
		case k == btf.KindPtr:
			ref(t.Ref())
		case k == btf.KindArray:
			a := t.Array()
			h.putWord(a.Nelems)
			ref(a.Elem)
			ref(a.Index)
		case k == btf.KindFuncProto:
			h.putWord(t.Vlen())
			for p := range t.Vlen() {
				ref(t.Param(p).Type)
			}
			ref(t.Ref())
		case k == btf.KindFwd && t.KindFlag():
			h.put(1)
		case k.IsComposite() && members:
			h.putWord(t.Vlen())
			for m := range t.Vlen() {
				h.putName(t.Member(m).NameOff)
				ref(t.Member(m).Type)
			}
		case k.IsAnyEnum() && members:
			h.putWord(t.Size())
			h.putWord(t.Vlen())
			for e := range t.Vlen() {
				h.putName(t.Enumerator(e).NameOff)
			}
		}
	}
}
