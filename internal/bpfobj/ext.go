// SPDX-License-Identifier: Apache-2.0

package bpfobj

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/limits"
)

// Ext is the content of .BTF.ext: sections in the order of their first CO-RE
// record, those without any after them.
type Ext struct {
	Sections []*ExtSection
	byName   map[string]*ExtSection
}

// ExtSection has the records of one ELF section.
type ExtSection struct {
	Name    string
	Records []Record // CO-RE relocations, in the object's order
	funcs   []funcInfo
	lines   []lineInfo // both by offset
}

// Record is a CO-RE relocation record, with the function and the line that it is
// in. Records of one function, or of one line, share these names.
type Record struct {
	Off    uint32     // of the instruction in its section, bytes
	Type   btf.TypeID // local type
	Access uint32     // offset of the access string in the BTF's strings
	Kind   uint32     // enum bpf_core_relo_kind
	Start  uint32     // of the function in its section, bytes; 0 where it is not known
	Func   string     // "" where it is not known
	Source string     // file:line, "" where it is not known
}

type funcInfo struct {
	off    uint32
	typeID btf.TypeID
}

// lineInfo says where the code from an offset of a section on comes from.
type lineInfo struct {
	off  uint32
	file uint32 // offset of its name in the BTF's strings; 0 for one that is unusable
	line uint32
}

// source returns file:line, "" where that is not known.
func (l *lineInfo) source(types *btf.BTF) string {
	if l == nil || l.file == 0 {
		return ""
	}
	return string(types.Name(l.file)) + ":" + strconv.FormatUint(uint64(l.line), 10)
}

// line returns the line of an instruction of a function that begins at start, nil
// where it is not known.
func (s *ExtSection) line(off, start uint32) *lineInfo {
	i := sort.Search(len(s.lines), func(i int) bool { return s.lines[i].off > off })
	if i == 0 || s.lines[i-1].off < start {
		return nil
	}
	return &s.lines[i-1]
}

const (
	extHdrLen     = 24
	extHdrLenCore = 32 // with core_relo_off and core_relo_len
)

// parseExt reads .BTF.ext. Names are taken from types.
func parseExt(data []byte, types *btf.BTF) (*Ext, error) {
	if len(data) < extHdrLen {
		return nil, fmt.Errorf("header: %d bytes, want at least %d", len(data), extHdrLen)
	}
	bo := types.Order()
	if bo.Uint16(data) != btf.Magic {
		return nil, errors.New("header: no magic in the byte order of .BTF")
	}
	if data[2] != btf.Version {
		return nil, fmt.Errorf("header: version %d, want %d", data[2], btf.Version)
	}
	hdrLen := uint64(bo.Uint32(data[4:]))
	if hdrLen < extHdrLen || hdrLen > uint64(len(data)) {
		return nil, fmt.Errorf("header: hdr_len %d of %d bytes of data", hdrLen, len(data))
	}
	p := extParser{
		data: data, types: types, bo: bo, hdrLen: hdrLen, ext: &Ext{byName: make(map[string]*ExtSection)},
		names: limits.NewMeter(context.Background(), limits.ObjectNames, "bytes of names"), files: make(map[uint32]uint32),
	}
	if hdrLen >= extHdrLenCore {
		p.sub("core_relo", 24, 16, func(s *ExtSection, data []byte, rec int) {
			s.Records = slices.Grow(s.Records, len(data)/rec)
			for b := range slices.Chunk(data, rec) {
				s.Records = append(s.Records, Record{Off: bo.Uint32(b), Type: btf.TypeID(bo.Uint32(b[4:])), Access: bo.Uint32(b[8:]), Kind: bo.Uint32(b[12:])})
			}
		})
	}
	p.sub("func_info", 8, 8, func(s *ExtSection, data []byte, rec int) {
		s.funcs = slices.Grow(s.funcs, len(data)/rec)
		for b := range slices.Chunk(data, rec) {
			s.funcs = append(s.funcs, funcInfo{bo.Uint32(b), btf.TypeID(bo.Uint32(b[4:]))})
		}
	})
	p.sub("line_info", 16, 16, func(s *ExtSection, data []byte, rec int) {
		s.lines = slices.Grow(s.lines, len(data)/rec)
		for b := range slices.Chunk(data, rec) {
			s.lines = append(s.lines, lineInfo{bo.Uint32(b), p.file(bo.Uint32(b[4:])), bo.Uint32(b[12:]) >> 10})
		}
	})
	if p.err != nil {
		return nil, p.err
	}
	for _, s := range p.ext.Sections {
		if p.place(s); p.names.Err() != nil {
			return nil, p.names.Err()
		}
	}
	return p.ext, nil
}

// extParser is one parseExt.
type extParser struct {
	data   []byte
	types  *btf.BTF
	bo     binary.ByteOrder
	hdrLen uint64
	ext    *Ext
	names  *limits.Meter
	files  map[uint32]uint32 // as of lineInfo, by offset
	last   uint32            // the last of these
	err    error
}

// sub reads the subsection whose offset and length stand at byte at of the
// header: the size of a record, then per ELF section its name, the number of
// records and the records, which may be longer than we know but not shorter
// than minRec bytes. add is called for each ELF section.
func (p *extParser) sub(what string, at int, minRec uint32, add func(s *ExtSection, data []byte, rec int)) {
	if p.err != nil {
		return
	}
	off, size := p.hdrLen+uint64(p.bo.Uint32(p.data[at:])), uint64(p.bo.Uint32(p.data[at+4:]))
	if size == 0 {
		return
	}
	if off+size > uint64(len(p.data)) {
		p.err = fmt.Errorf("%s: section at %d+%d exceeds %d bytes of data", what, off, size, len(p.data))
		return
	}
	d := p.data[off : off+size]
	if len(d) < 4 {
		p.err = fmt.Errorf("%s: cut short", what)
		return
	}
	rec := p.bo.Uint32(d)
	if rec < minRec || rec%4 != 0 {
		p.err = fmt.Errorf("%s: records of %d bytes, want at least %d", what, rec, minRec)
		return
	}
	for d = d[4:]; len(d) > 0; {
		if len(d) < 8 {
			p.err = fmt.Errorf("%s: cut short", what)
			return
		}
		name, n := p.types.Name(p.bo.Uint32(d)), uint64(p.bo.Uint32(d[4:]))
		d = d[8:]
		if n*uint64(rec) > uint64(len(d)) {
			p.err = fmt.Errorf("%s: section %q: %d records of %d bytes, %d bytes are left", what, name, n, rec, len(d))
			return
		}
		if !p.names.Step(1 + len(name)) {
			p.err = p.names.Err()
			return
		}
		add(p.ext.section(name), d[:n*uint64(rec)], int(rec))
		d = d[n*uint64(rec):]
	}
}

func (x *Ext) section(name []byte) *ExtSection {
	s, ok := x.byName[string(name)]
	if !ok {
		s = &ExtSection{Name: string(name)}
		x.byName[s.Name] = s
		x.Sections = append(x.Sections, s)
	}
	return s
}

// file returns the offset of a file's name, 0 for a name that no file has.
func (p *extParser) file(off uint32) uint32 {
	if off == p.last {
		return p.files[off]
	}
	p.last = off
	known, ok := p.files[off]
	if !ok {
		n := len(p.types.Name(off))
		p.names.Step(1 + n)
		if n > 0 && n <= limits.PathBytes {
			known = off
		}
		p.files[off] = known
	}
	return known
}

// place finds the functions and the source lines of a section's records, until
// there are too many names.
func (p *extParser) place(s *ExtSection) {
	byOff(s.funcs, func(f funcInfo) uint32 { return f.off })
	byOff(s.lines, func(l lineInfo) uint32 { return l.off })
	if len(s.Records) == 0 {
		return
	}
	functions := make(map[int]string) // names, by their place in s.funcs
	var line *lineInfo                // of the last record
	source := ""
	for i := range s.Records {
		r := &s.Records[i]
		if n := sort.Search(len(s.funcs), func(i int) bool { return s.funcs[i].off > r.Off }) - 1; n >= 0 {
			name, ok := functions[n]
			if !ok {
				fn := p.types.Type(s.funcs[n].typeID)
				name = string(fn.Name())
				functions[n] = name
				p.names.Step(len(name))
			}
			r.Func, r.Start = name, s.funcs[n].off
		}
		if l := s.line(r.Off, r.Start); l != line {
			line, source = l, l.source(p.types)
			p.names.Step(len(source))
		}
		if r.Source = source; p.names.Err() != nil {
			return
		}
	}
}

// byOff sorts what has an offset by it.
func byOff[T any](list []T, off func(T) uint32) {
	order := func(a, b T) int { return cmp.Compare(off(a), off(b)) }
	if !slices.IsSortedFunc(list, order) {
		slices.SortStableFunc(list, order)
	}
}
