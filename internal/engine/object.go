// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"sync"

	"github.com/btfgen/btfgen/internal/btfenc"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/rawbtf"
)

// ErrNotBPF says that an ELF file is not a BPF object.
var ErrNotBPF = errors.New("not a BPF object")

// Object is the local side: a BPF object with its types and relocation
// records. It is immutable and safe for use by many goroutines.
type Object struct {
	name    string
	btf     *rawbtf.BTF // nil without .BTF
	raw     []byte      // of which btf is a view
	order   binary.ByteOrder
	why     string // why there are no relocations
	records []Record
	specs   []*spec // distinct ones, in the order of their first record

	alone sync.Once
	set   *Set

	data    []byte // the file
	linked  sync.Once
	units   []Unit
	linkErr error
}

// Record is one CO-RE relocation record of an object.
type Record struct {
	Section string // ELF section of the instruction
	Program string // function that the instruction is in, "" if unknown
	Source  string // file:line, "" without line info
	Index   int    // position among the records of the section, from 0
	Insn    int    // position in the function, or in the section where that is unknown, in instructions
	Kind    Kind

	insn   insn
	spec   int32  // number of the spec
	offset uint32 // of the instruction in the section, bytes
}

// ParseObject reads a BPF ELF object. The name is used in messages and logs.
// An object without .BTF, without .BTF.ext or without relocations is no error:
// [Object.Empty] says so. data must not change while the object is in use.
func ParseObject(name string, data []byte) (*Object, error) {
	o := &Object{name: name, data: data}
	if err := o.parse(data); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return o, nil
}

// Name returns the name that was given to ParseObject.
func (o *Object) Name() string { return o.name }

// Order returns the byte order of the object.
func (o *Object) Order() binary.ByteOrder { return o.order }

// Records returns the relocation records in the object's order. The slice
// belongs to the object.
func (o *Object) Records() []Record { return o.records }

// Member is a member that a relocation leads through.
type Member struct {
	Struct btfenc.TypeID // that has it
	Name   string        // empty if the relocation is about the struct as a whole
	Exists bool          // the relocation asks whether it exists
}

// Members returns the named members that the relocations lead through, and the structs that they are about as a
// whole. Those of unreadable relocations are left out.
func (o *Object) Members() iter.Seq[Member] {
	return func(yield func(Member) bool) {
		for _, s := range o.specs {
			if s.err != nil || s.kind.IsEnumval() {
				continue
			}
			if t, ok := o.btf.SkipMods(s.root); s.kind.IsType() && ok && !yield(Member{t.ID, "", s.kind.IsExistence()}) {
				return
			}
			for _, a := range s.acc {
				if a.name != "" && !yield(Member{a.typeID, a.name, s.kind.IsExistence()}) {
					return
				}
			}
		}
	}
}

// Set returns the set of this object alone, made at the first call.
func (o *Object) Set() *Set {
	o.alone.Do(func() { o.set = NewSet(o.order, o) })
	return o.set
}

// BTF returns the object's own types, nil if it has none.
func (o *Object) BTF() *rawbtf.BTF { return o.btf }

// Relocation names what a record asks for: "byte_off struct task_struct.mm.pgd".
func (o *Object) Relocation(r *Record) string { return o.specs[r.spec].String() }

// Disputed says how loaders differ on the flavor of a name that a record asks for, "" where they agree.
func (o *Object) Disputed(r *Record) string {
	if s := o.specs[r.spec]; s.asks() {
		return s.disputed()
	}
	return ""
}

// Empty says why the object has no relocations, or "" if it has some.
func (o *Object) Empty() string { return o.why }

// NoRelocations is what Empty says of an object that has all sections, and merely asks nothing.
const NoRelocations = "no CO-RE relocations"

func (o *Object) parse(data []byte) (err error) {
	if err := checkNames(data); err != nil {
		return fmt.Errorf("elf: %w", err)
	}
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("elf: %w", trimELF(err))
	}
	if f.Machine != elf.EM_BPF && f.Machine != elf.EM_NONE || f.Class != elf.ELFCLASS64 {
		return fmt.Errorf("elf: %w, but %s for %s", ErrNotBPF, f.Class, f.Machine)
	}
	o.order = f.ByteOrder
	sect := func(name string) ([]byte, error) {
		s := f.Section(name)
		if s == nil || s.Type == elf.SHT_NOBITS {
			return nil, nil
		}
		if s.Size > limits.SectionBytes {
			return nil, fmt.Errorf("%s: %d bytes, more than %d", name, s.Size, limits.SectionBytes)
		}
		if s.Flags&elf.SHF_COMPRESSED == 0 && s.Offset <= uint64(len(data)) && s.FileSize <= uint64(len(data))-s.Offset {
			return data[s.Offset:][:s.FileSize], nil
		}
		b, err := s.Data()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, trimELF(err))
		}
		return b, nil
	}
	raw, err := sect(".BTF")
	if err != nil {
		return err
	}
	if len(raw) == 0 {
		o.why = "no .BTF section"
		return nil
	}
	if o.btf, err = rawbtf.New(raw, nil); err != nil {
		return fmt.Errorf(".BTF: %w", err)
	}
	o.raw = raw
	if o.btf.Order() != o.order {
		return fmt.Errorf(".BTF: byte order %s differs from the object's", o.btf.Order())
	}
	rawExt, err := sect(".BTF.ext")
	if err != nil {
		return err
	}
	if len(rawExt) == 0 {
		o.why = "no .BTF.ext section"
		return nil
	}
	ext, err := parseExt(rawExt, o.btf)
	if err != nil {
		return fmt.Errorf(".BTF.ext: %w", err)
	}
	if err := o.addRecords(ext, sect); err != nil {
		return err
	}
	if len(o.records) == 0 {
		o.why = NoRelocations
	}
	return nil
}

// checkNames bounds the memory that the section names of a 64-bit ELF file
// take by [limits.SectionNames]. debug/elf makes a string of each, and a hostile
// table can have every section's name run to the end of the table.
func checkNames(data []byte) error {
	const header, section = 64, 64 // bytes
	if len(data) < header {
		return nil // debug/elf says what is wrong
	}
	var bo binary.ByteOrder = binary.LittleEndian
	if elf.Data(data[elf.EI_DATA]) == elf.ELFDATA2MSB {
		bo = binary.BigEndian
	}
	at := func(i uint64) []byte {
		off := bo.Uint64(data[40:])
		if n := uint64(len(data)); off > n || i >= (n-off)/section {
			return make([]byte, section)
		}
		return data[off+i*section:][:section]
	}
	n, names := uint64(bo.Uint16(data[60:])), uint64(bo.Uint16(data[62:]))
	if n == 0 { // the numbers are too large for the header
		n = bo.Uint64(at(0)[32:])
	}
	if names == uint64(elf.SHN_XINDEX) {
		names = uint64(bo.Uint32(at(0)[40:]))
	}
	if size := bo.Uint64(at(names)[32:]); n > 0 && size > limits.SectionNames/n {
		return fmt.Errorf("%d sections with a table of names of %d bytes are too much", n, size)
	}
	return nil
}

// trimELF takes the record offset and Go syntax out of debug/elf's errors.
func trimELF(err error) error {
	var fe *elf.FormatError
	if errors.As(err, &fe) {
		return fe
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("file is cut short")
	}
	return err
}

// addRecords takes the records over. Equal ones share a spec.
func (o *Object) addRecords(ext *extInfo, sect func(string) ([]byte, error)) error {
	type key struct{ typeID, access, kind uint32 }
	specs := make(map[key]int32)
	names, relos := 0, 0 // bytes, records
	for _, s := range ext.sections {
		relos += len(s.relos)
	}
	o.records = make([]Record, 0, relos)
	for _, s := range ext.sections {
		if len(s.relos) == 0 {
			continue
		}
		code, err := sect(s.name)
		if err != nil {
			return err
		}
		byOff := func(a, b uint32) int { return int(int64(a) - int64(b)) }
		slices.SortStableFunc(s.funcs, func(a, b funcInfo) int { return byOff(a.insnOff, b.insnOff) })
		slices.SortStableFunc(s.lines, func(a, b lineInfo) int { return byOff(a.insnOff, b.insnOff) })
		functions := make(map[int]string) // names, by their place in s.funcs
		for i, rec := range s.relos {
			k := key{rec.typeID, rec.accessOff, rec.kind}
			n, ok := specs[k]
			if !ok {
				n = int32(len(o.specs))
				specs[k] = n
				spec := parseSpec(o.btf, Kind(rec.kind), btfenc.TypeID(rec.typeID), string(o.btf.Name(rec.accessOff)))
				if names += spec.size(); names > limits.SignatureBytes {
					return &limits.Exceeded{Max: limits.SignatureBytes, What: "bytes of names on the way to what is asked for"}
				}
				o.specs = append(o.specs, spec)
			}
			r := Record{Section: s.name, Index: i, Kind: Kind(rec.kind), Insn: int(rec.insnOff / insnSize), spec: n, offset: rec.insnOff}
			r.insn = readInsn(code, rec.insnOff, o.order)
			o.place(&r, s, rec.insnOff, functions)
			o.records = append(o.records, r)
		}
	}
	return nil
}

// place finds the function and the source line of an instruction. Records of
// one function share its name.
func (o *Object) place(r *Record, s *extSection, off uint32, names map[int]string) {
	if i := lastAtMost(len(s.funcs), off, func(i int) uint32 { return s.funcs[i].insnOff }); i >= 0 {
		name, ok := names[i]
		if !ok {
			fn := o.btf.Type(btfenc.TypeID(s.funcs[i].typeID))
			name = string(fn.Name())
			names[i] = name
		}
		r.Program = name
		r.Insn = int((off - s.funcs[i].insnOff) / insnSize)
	}
	if i := lastAtMost(len(s.lines), off, func(i int) uint32 { return s.lines[i].insnOff }); i >= 0 {
		l := s.lines[i]
		if file := o.btf.Name(l.fileOff); len(file) > 0 {
			r.Source = string(file) + ":" + strconv.Itoa(int(l.lineCol>>10))
		}
	}
}

// lastAtMost returns the last i of n ascending values that is at most v, or -1.
func lastAtMost(n int, v uint32, at func(int) uint32) int {
	lo, hi := 0, n
	for lo < hi {
		if mid := (lo + hi) / 2; at(mid) <= v {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo - 1
}

// Spec returns a number that records of one object share if they ask the same
// of the same local type.
func (r *Record) Spec() int { return int(r.spec) }
