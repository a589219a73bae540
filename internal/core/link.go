// SPDX-License-Identifier: Apache-2.0

package core

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"github.com/btfgen/btfgen/internal/limits"
)

// cilium/ebpf relocates each function outside .text together with all functions
// that it refers to, directly or not (loadProgramSections, loadFunctions and
// flattenInstructions in elf_reader.go and linker.go, v0.22). Functions are
// symbols, and references go by name: a call or the address of a function. Of
// two symbols in one place the later counts. A function that refers to itself
// through others is linked a second time.

// Unit is a function with all that cilium/ebpf links into it.
type Unit struct {
	Section, Name string
	Records       []int32 // of the object; twice where a function is linked twice
}

// Units returns what cilium/ebpf relocates together, by section and name. The
// object is linked at the first call. An object with broken symbols has no
// units; an error is a [limits.Exceeded].
func (o *Object) Units() ([]Unit, error) {
	units, err := o.link()
	if x := (*limits.Exceeded)(nil); errors.As(err, &x) {
		return nil, err
	}
	if err != nil {
		return nil, nil
	}
	return units, nil
}

// linker is one link.
type linker struct {
	*Object
	syms     []elfSymbol
	sections map[uint16]*codeSection
	funcs    map[string]*linkedFunc
}

type elfSymbol struct {
	name    string
	info    byte
	section uint16
	at      uint64
	size    uint64
}

// codeSection is a section with functions.
type codeSection struct {
	name  string
	code  []byte
	funcs map[uint64]*elfSymbol // by offset
	refs  map[uint64]*elfSymbol // relocations, by offset
}

// linkedFunc is a function as cilium/ebpf reads it.
type linkedFunc struct {
	section string
	records []int32
	refs    []string // names, sorted
}

var errLink = errors.New("cilium/ebpf refuses the object")

func link(o *Object) ([]Unit, error) {
	l := &linker{Object: o, sections: make(map[uint16]*codeSection), funcs: make(map[string]*linkedFunc)}
	for _, pass := range []func() error{l.readSections, l.readSymbols, l.readRelocations, l.readFuncs} {
		if err := pass(); err != nil {
			return nil, err
		}
	}
	return l.flatten()
}

func (l *linker) readSections() error {
	if n := len(l.Object.sections); n > limits.Sections {
		return &limits.Exceeded{Max: limits.Sections, What: "sections"}
	}
	for i, s := range l.Object.sections {
		if s.Type != elf.SHT_PROGBITS || s.Flags&elf.SHF_EXECINSTR == 0 || s.Size == 0 {
			continue
		}
		code, err := l.bytes(s)
		if err != nil {
			return err
		}
		l.sections[uint16(i)] = &codeSection{s.Name, code, make(map[uint64]*elfSymbol), make(map[uint64]*elfSymbol)}
	}
	return nil
}

// bytes returns a section that is not compressed; cilium/ebpf refuses others.
func (l *linker) bytes(s *elf.Section) ([]byte, error) {
	if n := uint64(len(l.data)); s.Type == elf.SHT_NOBITS || s.Flags&elf.SHF_COMPRESSED != 0 || s.Offset > n || s.FileSize > n-s.Offset {
		return nil, errLink
	}
	return l.data[s.Offset:][:s.FileSize], nil
}

func (l *linker) readSymbols() error {
	for _, s := range l.Object.sections {
		if s.Type != elf.SHT_SYMTAB || int(s.Link) >= len(l.Object.sections) {
			continue
		}
		table, err := l.bytes(s)
		if err != nil {
			return err
		}
		names, err := l.bytes(l.Object.sections[s.Link])
		if err != nil {
			return err
		}
		if len(table)/elf.Sym64Size > limits.Symbols {
			return &limits.Exceeded{Max: limits.Symbols, What: "symbols"}
		}
		l.syms = make([]elfSymbol, len(table)/elf.Sym64Size)
		for i := range l.syms {
			b := table[i*elf.Sym64Size:]
			y := &l.syms[i]
			*y = elfSymbol{info: b[4], section: l.order.Uint16(b[6:]), at: l.order.Uint64(b[8:]), size: l.order.Uint64(b[16:])}
			if y.name, err = nameAt(names, l.order.Uint32(b)); err != nil {
				return err
			}
			l.assign(y)
		}
		return nil // debug/elf reads the first
	}
	return errLink
}

func nameAt(names []byte, off uint32) (string, error) {
	if uint64(off) >= uint64(len(names)) {
		return "", nil
	}
	names = names[off:]
	n := bytes.IndexByte(names[:min(len(names), limits.NameBytes+1)], 0)
	if n < 0 {
		return "", &limits.Exceeded{Max: limits.NameBytes, What: "bytes in the name of a symbol"}
	}
	return string(names[:n]), nil
}

// assign notes the symbol of a function. Local symbols without a type are labels.
func (l *linker) assign(y *elfSymbol) {
	s := l.sections[y.section]
	t, local := elf.ST_TYPE(y.info), elf.ST_BIND(y.info) == elf.STB_LOCAL
	if s != nil && y.name != "" && (t == elf.STT_FUNC || t == elf.STT_NOTYPE && !local) {
		s.funcs[y.at] = y
	}
}

func (l *linker) readRelocations() error {
	for _, s := range l.Object.sections {
		to := l.sections[uint16(s.Info)]
		if s.Type != elf.SHT_REL || s.Info > 0xffff || to == nil {
			continue
		}
		b, err := l.bytes(s)
		if err != nil {
			return err
		}
		const entry = 16
		if len(b)/entry > limits.Relocations {
			return &limits.Exceeded{Max: limits.Relocations, What: "relocations"}
		}
		for ; len(b) >= entry; b = b[entry:] {
			n := l.order.Uint64(b[8:]) >> 32
			if n >= uint64(len(l.syms)) {
				return errLink
			}
			to.refs[l.order.Uint64(b)] = &l.syms[n]
		}
	}
	return nil
}

// readFuncs reads the functions. Records belong to instructions by their place
// in the section, gaps between functions not counted, and in their order: one
// that is not where an instruction is keeps those after it from being seen.
func (l *linker) readFuncs() error {
	slots := uint64(0)                  // of all functions, which may overlap
	records := make(map[string][]int32) // by section
	for i := range l.records {
		r := &l.records[i]
		records[r.Section] = append(records[r.Section], int32(i))
	}
	for _, list := range records {
		slices.SortStableFunc(list, func(a, b int32) int { return cmp.Compare(l.records[a].offset, l.records[b].offset) })
	}
	for _, n := range slices.Sorted(maps.Keys(l.sections)) {
		s := l.sections[n]
		todo := records[s.name]
		raw := uint32(0) // slots so far
		for _, at := range slices.Sorted(maps.Keys(s.funcs)) {
			y := s.funcs[at]
			if l.funcs[y.name] != nil || y.size > uint64(len(s.code)) || at > uint64(len(s.code))-y.size || y.size%insnSize != 0 {
				return errLink
			}
			if slots += y.size / insnSize; slots > limits.CalledInsns {
				return &limits.Exceeded{Max: limits.CalledInsns, What: "instructions of functions"}
			}
			fn := &linkedFunc{section: s.name}
			l.funcs[y.name] = fn
			refs := make(map[string]bool)
			for off := at; off < at+y.size; {
				code := s.code[off : at+y.size]
				width := uint32(1)
				if code[0] == ldImm64 {
					if width = 2; len(code) < 2*insnSize {
						return errLink
					}
				}
				if ref := l.reference(s, off, code); ref != "" {
					refs[ref] = true
				}
				if len(todo) > 0 && l.records[todo[0]].offset == raw*insnSize {
					fn.records = append(fn.records, todo[0])
					todo = todo[1:]
				}
				raw += width
				off += uint64(width) * insnSize
			}
			fn.refs = slices.Sorted(maps.Keys(refs))
		}
	}
	return nil
}

// reference returns the name of the function that an instruction calls or takes
// the address of, "" for none.
func (l *linker) reference(s *codeSection, off uint64, code []byte) string {
	const opCall, pseudoCall, pseudoFunc = 0x85, 1, 4
	if code[0] != opCall && code[0] != ldImm64 {
		return ""
	}
	src := code[1] >> 4
	if l.order == binary.BigEndian {
		src = code[1] & 0xf
	}
	imm := int64(int32(l.order.Uint32(code[4:])))
	call, load := code[0] == opCall && src == pseudoCall, code[0] == ldImm64
	if load {
		imm = int64(uint64(uint32(imm)) | uint64(l.order.Uint32(code[insnSize+4:]))<<32)
	}
	y, ok := s.refs[off]
	switch {
	case !ok:
		if !call && !(load && src == pseudoFunc) || imm == -1 {
			return ""
		}
		return s.nameAt(uint64(int64(off) + insnSize + imm*insnSize))
	case y.section == uint16(elf.SHN_UNDEF): // no kfunc has the name of a function
		if call && imm == -1 {
			return y.name
		}
		return ""
	}
	to := l.sections[y.section]
	switch {
	case to == nil:
		return ""
	case call && elf.ST_TYPE(y.info) == elf.STT_SECTION:
		return to.nameAt(uint64((imm + 1) * insnSize))
	case call && imm == -1:
		return y.name
	case load:
		return to.nameAt(uint64(imm))
	}
	return ""
}

func (s *codeSection) nameAt(off uint64) string {
	if y := s.funcs[off]; y != nil {
		return y.name
	}
	return ""
}

// flatten makes the units.
func (l *linker) flatten() ([]Unit, error) {
	var units []Unit
	called, records := 0, 0
	for _, name := range slices.Sorted(maps.Keys(l.funcs)) {
		fn := l.funcs[name]
		if fn.section == ".text" {
			continue
		}
		u := Unit{Section: fn.section, Name: name, Records: slices.Clip(fn.records)}
		linked := make(map[string]bool)
		for pending := slices.Clone(fn.refs); len(pending) > 0; pending = pending[1:] {
			ref := l.funcs[pending[0]]
			if ref == nil || linked[pending[0]] {
				continue
			}
			linked[pending[0]] = true
			u.Records = append(u.Records, ref.records...)
			for _, r := range ref.refs {
				if called++; called > limits.Called {
					return nil, &limits.Exceeded{Max: limits.Called, What: "functions that programs call"}
				}
				if !linked[r] {
					pending = append(pending, r)
				}
			}
		}
		if records += len(u.Records); records > limits.CalledRecords {
			return nil, &limits.Exceeded{Max: limits.CalledRecords, What: "records in functions that programs call"}
		}
		units = append(units, u)
	}
	slices.SortStableFunc(units, func(a, b Unit) int { return cmp.Compare(a.Section, b.Section) })
	return units, nil
}
