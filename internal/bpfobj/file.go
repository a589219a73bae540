// SPDX-License-Identifier: Apache-2.0

package bpfobj

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/btfgen/btfgen/internal/bpfobj/elffile"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/limits"
)

// ErrNotBPF is the error for an ELF file of another machine.
var ErrNotBPF = errors.New("not a BPF object")

var errCut = errors.New("file is cut short")

// File is a BPF ELF file with its types and .BTF.ext. It is for one goroutine at a time.
type File struct {
	Order binary.ByteOrder
	Types []byte   // content of .BTF
	BTF   *btf.BTF // view of Types; nil without .BTF
	Ext   *Ext     // nil without .BTF.ext

	data   []byte
	elf    *elf.File
	byName map[string]*elf.Section // the first of each name
	zeros  []byte
}

// Open reads the ELF header, the types and .BTF.ext; [File.Parse] reads the code. data must not change while the file
// is in use. The error for a file of another machine is [ErrNotBPF]; a file that exceeds a limit is a
// [limits.Exceeded].
func Open(data []byte) (*File, error) {
	if err := checkMachine(data); err != nil {
		return nil, err
	}
	e, err := elffile.New(bytes.NewReader(data), limits.Sections)
	if err != nil {
		return nil, fmt.Errorf("elf: %w", trimELF(err))
	}
	f := &File{Order: e.ByteOrder, data: data, elf: e, byName: make(map[string]*elf.Section)}
	for _, s := range e.Sections {
		if f.byName[s.Name] == nil {
			f.byName[s.Name] = s
		}
	}
	return f, f.readTypes()
}

// readTypes reads .BTF and .BTF.ext.
func (f *File) readTypes() error {
	raw, err := f.Section(".BTF")
	if err != nil || len(raw) == 0 {
		return err
	}
	if len(raw) < len(f.data)/4 {
		// A copy lets the rest of the file be freed.
		raw = bytes.Clone(raw)
	}
	if f.BTF, err = btf.New(raw, nil); err != nil {
		return fmt.Errorf(".BTF: %w", err)
	}
	f.Types = raw
	if f.BTF.Order() != f.Order {
		return fmt.Errorf(".BTF: byte order %s differs from the object's", f.BTF.Order())
	}
	if raw, err = f.Section(".BTF.ext"); err != nil || len(raw) == 0 {
		return err
	}
	if f.Ext, err = parseExt(raw, f.BTF); err != nil {
		return fmt.Errorf(".BTF.ext: %w", err)
	}
	return nil
}

// WithoutTypes says why a file has no types, and what to do.
func (f *File) WithoutTypes() string {
	if f.byName[".debug_info"] != nil {
		return "no .BTF section, only DWARF: compile with clang -g or gcc -gbtf"
	}
	return "no .BTF section: compile with -g, and strip with llvm-strip -g, which keeps types"
}

// Section returns the content of the first section of a name, nil if there is none.
func (f *File) Section(name string) ([]byte, error) {
	s := f.byName[name]
	if s == nil || s.Type == elf.SHT_NOBITS {
		return nil, nil
	}
	return f.bytes(s)
}

// bytes returns the content of a section, without a copy if possible.
func (f *File) bytes(s *elf.Section) ([]byte, error) {
	switch size := uint64(len(f.data)); {
	case s.Size > limits.SectionBytes:
		return nil, fmt.Errorf("%s: %w", s.Name, &limits.Exceeded{Max: limits.SectionBytes, What: "bytes in a section"})
	case s.Type == elf.SHT_NOBITS:
		if n := int(s.Size); n > len(f.zeros) {
			f.zeros = make([]byte, n)
		}
		return f.zeros[:s.Size], nil
	case s.Flags&elf.SHF_COMPRESSED != 0:
		return nil, fmt.Errorf("%s: compressed section", s.Name)
	case s.Offset > size || s.FileSize > size-s.Offset:
		return nil, fmt.Errorf("%s: %w", s.Name, errCut)
	}
	return f.data[s.Offset:][:s.FileSize], nil
}

// checkMachine rejects files that are not BPF objects.
func checkMachine(data []byte) error {
	if !bytes.HasPrefix(data, []byte(elf.ELFMAG)) || len(data) < 20 {
		return nil // an error of debug/elf
	}
	var bo binary.ByteOrder = binary.LittleEndian
	if elf.Data(data[elf.EI_DATA]) == elf.ELFDATA2MSB {
		bo = binary.BigEndian
	}
	class, machine := elf.Class(data[elf.EI_CLASS]), elf.Machine(bo.Uint16(data[18:]))
	if machine != elf.EM_BPF && machine != elf.EM_NONE || class != elf.ELFCLASS64 {
		return fmt.Errorf("elf: %w, but %s for %s", ErrNotBPF, class, machine)
	}
	return nil
}

// trimELF removes the record offset and Go syntax from debug/elf's errors.
func trimELF(err error) error {
	var fe *elf.FormatError
	if errors.As(err, &fe) {
		return fe
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errCut
	}
	return err
}
