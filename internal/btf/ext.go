// SPDX-License-Identifier: Apache-2.0

package btf

import (
	"encoding/binary"
	"errors"
	"fmt"
)

const extHdrLen = 24 // bytes, not counting the fields of ExtCore

// Ext is a view of a .BTF.ext section.
type Ext struct {
	order        binary.ByteOrder
	types        *BTF
	header, data []byte
}

// NewExt reads the header of .BTF.ext. Names are taken from types.
func NewExt(data []byte, types *BTF) (*Ext, error) {
	if len(data) < extHdrLen {
		return nil, fmt.Errorf("header: %d bytes, want at least %d", len(data), extHdrLen)
	}
	bo := types.Order()
	if bo.Uint16(data) != Magic {
		return nil, errors.New("header: no magic in the byte order of .BTF")
	}
	if data[2] != Version {
		return nil, fmt.Errorf("header: version %d, want %d", data[2], Version)
	}
	hdrLen := uint64(bo.Uint32(data[4:]))
	if hdrLen < extHdrLen || hdrLen > uint64(len(data)) {
		return nil, fmt.Errorf("header: hdr_len %d of %d bytes of data", hdrLen, len(data))
	}
	return &Ext{bo, types, data[:hdrLen], data[hdrLen:]}, nil
}

// ExtPart is one of the parts of .BTF.ext.
type ExtPart struct {
	name   string
	at     int    // where the header has its offset and length
	minRec uint32 // bytes of a record
}

// The parts.
var (
	ExtFuncs = ExtPart{"func_info", 8, 8}
	ExtLines = ExtPart{"line_info", 16, 16}
	ExtCore  = ExtPart{"core_relo", 24, 16} // the CO-RE relocation records; Ext may lack them
)

// Read reads a part: the size of a record, then per ELF section its name, the number of records, and the records, which
// have at least the bytes of the part. It calls section for each ELF section, with its records and their size.
func (x *Ext) Read(p ExtPart, section func(name, records []byte, size int) error) error {
	if p.at+8 > len(x.header) {
		return nil
	}
	bo := x.order
	off, size := uint64(bo.Uint32(x.header[p.at:])), uint64(bo.Uint32(x.header[p.at+4:]))
	fail := func(format string, args ...any) error { return fmt.Errorf(p.name+": "+format, args...) }
	switch {
	case size == 0:
		return nil
	case off+size > uint64(len(x.data)):
		return fail("section at %d+%d exceeds %d bytes of data", uint64(len(x.header))+off, size, len(x.header)+len(x.data))
	case size < 4:
		return fail("cut short")
	}
	d := x.data[off : off+size]
	rec := bo.Uint32(d)
	if rec < p.minRec || rec%4 != 0 {
		return fail("records of %d bytes, want at least %d", rec, p.minRec)
	}
	for d = d[4:]; len(d) > 0; {
		if len(d) < 8 {
			return fail("cut short")
		}
		name, n := x.types.Name(bo.Uint32(d)), uint64(bo.Uint32(d[4:]))
		d = d[8:]
		if n*uint64(rec) > uint64(len(d)) {
			return fail("section %q: %d records of %d bytes, %d bytes are left", name, n, rec, len(d))
		}
		n *= uint64(rec)
		if err := section(name, d[:n], int(rec)); err != nil {
			return err
		}
		d = d[n:]
	}
	return nil
}

// CoreRecord is a CO-RE relocation record.
type CoreRecord struct {
	Off    uint32 // offset of the instruction in its section, bytes
	Type   TypeID // local type
	Access uint32 // offset of the access string in the BTF's strings
	Kind   uint32 // enum bpf_core_relo_kind
}

// CoreRecord returns a record of ExtCore.
func (x *Ext) CoreRecord(rec []byte) CoreRecord {
	bo := x.order
	return CoreRecord{bo.Uint32(rec), TypeID(bo.Uint32(rec[4:])), bo.Uint32(rec[8:]), bo.Uint32(rec[12:])}
}
