// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/btfgen/btfgen/internal/rawbtf"
)

// A record of .BTF.ext belongs to one instruction of one section.
type (
	funcInfo struct{ insnOff, typeID uint32 }
	lineInfo struct{ insnOff, fileOff, lineCol uint32 }
	coreRelo struct{ insnOff, typeID, accessOff, kind uint32 }
)

// extSection holds the records of one ELF section, in the object's order.
type extSection struct {
	name  string
	funcs []funcInfo
	lines []lineInfo
	relos []coreRelo
}

// extInfo is the content of .BTF.ext, sections in the order of their first
// relocation, those without any after them.
type extInfo struct {
	sections []*extSection
	byName   map[string]*extSection
}

const (
	extMagic      = 0xeb9f
	extHdrLen     = 24
	extHdrLenCore = 32 // with core_relo_off and core_relo_len
)

// parseExt reads .BTF.ext. Names are taken from btf.
func parseExt(data []byte, btf *rawbtf.BTF) (*extInfo, error) {
	if len(data) < extHdrLen {
		return nil, fmt.Errorf("header: %d bytes, want at least %d", len(data), extHdrLen)
	}
	bo := btf.Order()
	if bo.Uint16(data) != extMagic {
		return nil, errors.New("header: no magic in the byte order of .BTF")
	}
	if data[2] != 1 {
		return nil, fmt.Errorf("header: version %d, want 1", data[2])
	}
	hdrLen := uint64(bo.Uint32(data[4:]))
	if hdrLen < extHdrLen || hdrLen > uint64(len(data)) {
		return nil, fmt.Errorf("header: hdr_len %d of %d bytes of data", hdrLen, len(data))
	}
	p := extParser{data: data, btf: btf, bo: bo, hdrLen: hdrLen}
	p.info.byName = make(map[string]*extSection)
	if hdrLen >= extHdrLenCore {
		readSub(&p, "core_relo", 24, 16, func(s *extSection) *[]coreRelo { return &s.relos }, func(b []byte) coreRelo {
			return coreRelo{bo.Uint32(b), bo.Uint32(b[4:]), bo.Uint32(b[8:]), bo.Uint32(b[12:])}
		})
	}
	readSub(&p, "func_info", 8, 8, func(s *extSection) *[]funcInfo { return &s.funcs }, func(b []byte) funcInfo {
		return funcInfo{bo.Uint32(b), bo.Uint32(b[4:])}
	})
	readSub(&p, "line_info", 16, 16, func(s *extSection) *[]lineInfo { return &s.lines }, func(b []byte) lineInfo {
		return lineInfo{bo.Uint32(b), bo.Uint32(b[4:]), bo.Uint32(b[12:])}
	})
	return &p.info, p.err
}

type extParser struct {
	data   []byte
	btf    *rawbtf.BTF
	bo     binary.ByteOrder
	hdrLen uint64
	info   extInfo
	err    error
}

// readSub reads the subsection whose offset and length stand at byte at of the
// header: the size of a record, then per ELF section its name, the number of
// records and the records, which may be longer than we know but not shorter
// than minRec bytes. It appends the decoded records to the section's list.
func readSub[T any](p *extParser, what string, at int, minRec uint32, list func(*extSection) *[]T, decode func([]byte) T) {
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
		name, n := p.btf.Name(p.bo.Uint32(d)), uint64(p.bo.Uint32(d[4:]))
		d = d[8:]
		if n*uint64(rec) > uint64(len(d)) {
			p.err = fmt.Errorf("%s: section %q: %d records of %d bytes, %d bytes are left", what, name, n, rec, len(d))
			return
		}
		l := list(p.info.section(string(name)))
		*l = slices.Grow(*l, int(n))
		for range n {
			*l = append(*l, decode(d[:rec]))
			d = d[rec:]
		}
	}
}

func (x *extInfo) section(name string) *extSection {
	s, ok := x.byName[name]
	if !ok {
		s = &extSection{name: name}
		x.byName[name] = s
		x.sections = append(x.sections, s)
	}
	return s
}
