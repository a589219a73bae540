// SPDX-License-Identifier: Apache-2.0

package bpfobj

import (
	"cmp"
	"context"
	"slices"
	"sort"
	"strconv"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/limits"
)

// Ext is the content of .BTF.ext: sections in the order of their first CO-RE record, then those without any.
type Ext struct {
	Sections []*ExtSection
	byName   map[string]*ExtSection
}

// ExtSection has the records of one ELF section.
type ExtSection struct {
	Name    string
	Records []Record   // CO-RE relocations, in the object's order
	funcs   []funcInfo // sorted by offset
	lines   sectionLines
}

// Record is a CO-RE relocation record with its function and line. Records of one function share its name.
type Record struct {
	btf.CoreRecord
	Start uint32 // offset of the function in its section, bytes; 0 if unknown
	Func  string // "" if unknown
	Line  Line
}

type funcInfo struct {
	off    uint32
	typeID btf.TypeID
}

// sectionLines are the lines of a section, by offset.
type sectionLines []lineInfo

// lineInfo is the source of the code from an offset of a section on.
type lineInfo struct {
	off uint32
	Line
}

// Line is a line of source. The zero value is unknown.
type Line struct {
	file uint32 // offset of its name in the BTF's strings; 0 if it is unusable
	line uint32
}

// Source returns file:line, "" if it is unknown. types is the object's BTF.
func (l Line) Source(types *btf.BTF) string {
	if l.file == 0 {
		return ""
	}
	return string(types.Name(l.file)) + ":" + strconv.FormatUint(uint64(l.line), 10)
}

// at returns the line of an instruction of a function that begins at start.
func (l sectionLines) at(off, start uint32) Line {
	i := sort.Search(len(l), func(i int) bool { return l[i].off > off })
	if i == 0 || l[i-1].off < start {
		return Line{}
	}
	return l[i-1].Line
}

// parseExt reads .BTF.ext. Names are taken from types.
func parseExt(data []byte, types *btf.BTF) (*Ext, error) {
	x, err := btf.NewExt(data, types)
	if err != nil {
		return nil, err
	}
	p := extParser{
		types: types, ext: &Ext{byName: make(map[string]*ExtSection)},
		names: limits.NewMeter(context.Background(), limits.ObjectNames, "bytes of names"), files: make(map[uint32]uint32),
	}
	bo := types.Order()
	err = cmp.Or(
		p.part(x, btf.ExtCore, func(s *ExtSection, d []byte, size int) {
			s.Records = slices.Grow(s.Records, len(d)/size)
			for ; len(d) > 0; d = d[size:] {
				s.Records = append(s.Records, Record{CoreRecord: x.CoreRecord(d)})
			}
		}),
		p.part(x, btf.ExtFuncs, func(s *ExtSection, d []byte, size int) {
			for ; len(d) > 0; d = d[size:] {
				s.funcs = append(s.funcs, funcInfo{bo.Uint32(d), btf.TypeID(bo.Uint32(d[4:]))})
			}
		}),
		p.part(x, btf.ExtLines, func(s *ExtSection, d []byte, size int) {
			s.lines = slices.Grow(s.lines, len(d)/size)
			for ; len(d) > 0; d = d[size:] {
				file := bo.Uint32(d[4:])
				if n := len(s.lines); n == 0 || s.lines[n-1].file != file { // most lines have the file of the one before
					file = p.file(file)
				}
				s.lines = append(s.lines, lineInfo{bo.Uint32(d), Line{file, bo.Uint32(d[12:]) >> 10}})
			}
		}),
	)
	for _, s := range p.ext.Sections {
		p.place(s)
	}
	return p.ext, cmp.Or(err, p.names.Err())
}

// extParser is one parseExt.
type extParser struct {
	types *btf.BTF
	ext   *Ext
	names *limits.Meter
	files map[uint32]uint32 // lineInfo.file by offset of the name
}

// part reads a part. add is called for each ELF section, with its records and their size.
func (p *extParser) part(x *btf.Ext, part btf.ExtPart, add func(s *ExtSection, records []byte, size int)) error {
	return x.Read(part, func(name, records []byte, size int) error {
		if !p.names.Step(1 + len(name)) {
			return p.names.Err()
		}
		add(p.ext.section(name), records, size)
		return nil
	})
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

// file returns the offset of a file's name, 0 if it is not a possible name.
func (p *extParser) file(off uint32) uint32 {
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

// place sets the functions and lines of a section's records, until there are too many names, also for a log that has the
// source of each record.
func (p *extParser) place(s *ExtSection) {
	byOff(s.funcs, func(f funcInfo) uint32 { return f.off })
	byOff(s.lines, func(l lineInfo) uint32 { return l.off })
	functions := make([]string, len(s.funcs)) // names
	var last Line
	size := 0 // length of the name of last.file
	for i := range s.Records {
		r := &s.Records[i]
		if n := sort.Search(len(s.funcs), func(i int) bool { return s.funcs[i].off > r.Off }) - 1; n >= 0 {
			if functions[n] == "" {
				functions[n] = string(p.types.Type(s.funcs[n].typeID).Name())
				if !p.names.Step(1 + len(functions[n])) {
					return
				}
			}
			r.Func, r.Start = functions[n], s.funcs[n].off
		}
		if r.Line = s.lines.at(r.Off, r.Start); r.Line != last {
			if r.Line.file != last.file {
				size = len(p.types.Name(r.Line.file))
			}
			last = r.Line
			if !p.names.Step(1 + size) {
				return
			}
		}
	}
}

// byOff sorts by offset.
func byOff[T any](list []T, off func(T) uint32) {
	order := func(a, b T) int { return cmp.Compare(off(a), off(b)) }
	if !slices.IsSortedFunc(list, order) {
		slices.SortStableFunc(list, order)
	}
}
