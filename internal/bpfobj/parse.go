// SPDX-License-Identifier: Apache-2.0

package bpfobj

import (
	"bytes"
	"cmp"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/limits"
)

// Parse reads the code of the file and what it refers to. The object does not need the file's bytes, unless sections overlap.
// An object without programs is an error, and so is one that exceeds a limit ([limits.Exceeded]).
func (f *File) Parse(ctx context.Context) (*Code, error) {
	p := parser{
		Code: &Code{Order: f.Order, BTF: f.BTF, lines: make(map[string]sectionLines)},
		file: f.elf, bytes: f.bytes, code: make(map[int]span), frozen: make(map[int]int), externs: make(map[string]int),
		spent: newSpent(ctx), size: len(f.data),
	}
	var records []*ExtSection
	if f.Ext != nil {
		records = f.Ext.Sections
		for _, s := range records {
			p.lines[s.Name] = s.lines
		}
	}
	if err := p.parse(ctx, records); err != nil {
		return nil, err
	}
	return p.Code, nil
}

// parser is one Parse.
type parser struct {
	*Code
	file    *elf.File
	bytes   func(*elf.Section) ([]byte, error)
	syms    []elf.Symbol   // all but the null symbol
	code    map[int]span   // functions by section
	frozen  map[int]int    // index into Data by section
	externs map[string]int // index by name
	size    int            // bytes of the file
	copied  int            // bytes of read-only data
	spent   spent
}

// spent counts what an object uses of the limits.
type spent struct {
	names, insns, relocations          *limits.Meter
	called, calledInsns, calledRecords *limits.Meter
	steps                              *limits.Meter // work without a limit of its own
}

func newSpent(ctx context.Context) spent {
	of := func(max int64, what string) *limits.Meter { return limits.NewMeter(ctx, max, what) }
	return spent{
		names:         of(limits.ObjectNames, "bytes of names"),
		insns:         of(limits.Instructions, "instructions"),
		relocations:   of(limits.Relocations, "relocations"),
		called:        of(limits.Called, "functions that programs call"),
		calledInsns:   of(limits.CalledInsns, "instructions of functions that programs call"),
		calledRecords: of(limits.CalledRecords, "records in functions that programs call"),
		steps:         of(limits.ParseSteps, "steps"),
	}
}

// atMost returns an error if n exceeds max.
func atMost(n int, max int64, what string) error {
	if int64(n) > max {
		return &limits.Exceeded{Max: max, What: what}
	}
	return nil
}

// span is the functions of one section.
type span struct{ first, end int }

func (p *parser) parse(ctx context.Context, records []*ExtSection) error {
	for _, s := range p.file.Sections {
		if s.Type == elf.SHT_NOBITS || s.Flags&elf.SHF_COMPRESSED != 0 {
			p.Unfolded += min(s.Size, math.MaxUint32)
		}
	}
	for _, pass := range []func() error{
		p.readSymbols, p.readLicense, p.readVersion, p.readData, p.readFuncs, p.readMaps, p.readExterns, p.readRelocations,
		p.readStructOps, p.readProgramArrays, p.link,
	} {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := pass(); err != nil {
			return err
		}
	}
	if len(p.Programs) == 0 {
		return p.noProgram()
	}
	return p.place(records)
}

// ErrNoProgram is the cause of the error of Parse for a valid object without programs.
var ErrNoProgram = errors.New("no program in it")

// noProgram says what the object has instead of programs.
func (p *parser) noProgram() error {
	switch {
	case len(p.Funcs) > 0:
		return fmt.Errorf("%w, only functions to link statically", ErrNoProgram)
	case len(p.Maps) > 0:
		return fmt.Errorf("%w, only maps", ErrNoProgram)
	}
	return ErrNoProgram
}

// section returns the section of a symbol, nil if it has none.
func (p *parser) section(y *elf.Symbol) *elf.Section {
	if i := int(y.Section); i > 0 && i < len(p.file.Sections) {
		return p.file.Sections[i]
	}
	return nil
}

// readSymbols reads the first table of symbols. debug/elf does not bound the names.
func (p *parser) readSymbols() error {
	i := slices.IndexFunc(p.file.Sections, func(s *elf.Section) bool {
		return s.Type == elf.SHT_SYMTAB && int(s.Link) < len(p.file.Sections)
	})
	if i < 0 {
		return nil
	}
	s := p.file.Sections[i]
	table, err := p.bytes(s)
	if err != nil {
		return err
	}
	names, err := p.bytes(p.file.Sections[s.Link])
	if err != nil {
		return err
	}
	if err := atMost(len(table)/elf.Sym64Size, limits.Symbols, "symbols"); err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	for n := 1; (n+1)*elf.Sym64Size <= len(table); n++ {
		b := table[n*elf.Sym64Size:]
		name, _, _ := bytes.Cut(names[min(int(p.Order.Uint32(b)), len(names)):], []byte{0})
		if err := p.spent.name(len(name)); err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		p.syms = append(p.syms, elf.Symbol{
			Name: string(name), Info: b[4], Other: b[5], Section: elf.SectionIndex(p.Order.Uint16(b[6:])),
			Value: p.Order.Uint64(b[8:]), Size: p.Order.Uint64(b[16:]),
		})
	}
	return nil
}

// name counts the bytes of a name.
func (s *spent) name(n int) error {
	if err := atMost(n, limits.NameBytes, "bytes in a name"); err != nil {
		return err
	}
	s.names.Step(1 + n)
	return s.names.Err()
}

// readLicense reads the license as the kernel does (bpf_prog_load): the first 127 bytes.
func (p *parser) readLicense() error {
	s := p.file.Section("license")
	if s == nil || s.Type != elf.SHT_PROGBITS {
		return nil
	}
	b, err := p.bytes(s)
	b, _, _ = bytes.Cut(b[:min(len(b), 127)], []byte{0})
	p.License = string(b)
	return err
}

// readVersion reads the number that loaders give the kernel with the programs (bpf_object__init_kversion in libbpf.c).
func (p *parser) readVersion() error {
	s := p.file.Section("version")
	if s == nil || s.Type != elf.SHT_PROGBITS || s.Size != 4 {
		return nil
	}
	b, err := p.bytes(s)
	if err == nil && len(b) == 4 {
		p.Version = p.Order.Uint32(b)
	}
	return err
}

// readData reads the sections whose content the loader freezes.
func (p *parser) readData() error {
	for i, s := range p.file.Sections {
		if !strings.HasPrefix(s.Name, ".rodata") {
			continue
		}
		b, err := p.bytes(s)
		if err != nil {
			return err
		}
		if p.copied += len(b); p.copied <= p.size { // more only where sections overlap or have no bytes in the file
			b = bytes.Clone(b)
		}
		p.frozen[i] = len(p.Data)
		p.Data = append(p.Data, Data{Bytes: b})
	}
	for _, y := range p.syms {
		if i, ok := p.frozen[int(y.Section)]; ok && elf.ST_TYPE(y.Info) == elf.STT_OBJECT {
			p.Data[i].vars = append(p.Data[i].vars, variable{y.Name, int64(y.Value), int64(y.Size)})
		}
	}
	for i := range p.Data {
		slices.SortStableFunc(p.Data[i].vars, func(a, b variable) int { return cmp.Compare(a.off, b.off) })
	}
	return nil
}

// readFuncs cuts the code into functions at the symbols.
func (p *parser) readFuncs() error {
	bySection := p.functionSymbols()
	for i, s := range p.file.Sections {
		if s.Flags&elf.SHF_EXECINSTR == 0 || s.Type != elf.SHT_PROGBITS || s.Size == 0 {
			continue
		}
		code, err := p.bytes(s)
		if err != nil {
			return err
		}
		if len(bySection[i]) == 0 {
			return fmt.Errorf("%s: no function symbols, which llvm-strip -g keeps", s.Name)
		}
		if !p.spent.insns.Step(len(code) / asm.InstructionSize) {
			return fmt.Errorf("%s: %w", s.Name, p.spent.insns.Err())
		}
		p.cut(i, s.Name, decode(code, p.Order), bySection[i])
		if err := atMost(len(p.Funcs), limits.Functions, "functions"); err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	return nil
}

// functionSymbols returns the symbols of functions, by section.
func (p *parser) functionSymbols() map[int][]elf.Symbol {
	bySection := make(map[int][]elf.Symbol)
	for _, y := range p.syms {
		s, t, isLocal := p.section(&y), elf.ST_TYPE(y.Info), elf.ST_BIND(y.Info) == elf.STB_LOCAL
		// Clang before version 8 gives functions no type. Local symbols without a type are labels.
		if s == nil || t != elf.STT_FUNC && (t != elf.STT_NOTYPE || isLocal) {
			continue
		}
		if s.Flags&elf.SHF_EXECINSTR == 0 || y.Name == "" || y.Value%asm.InstructionSize != 0 {
			continue
		}
		bySection[int(y.Section)] = append(bySection[int(y.Section)], y)
		if isLocal && s.Name != ".text" {
			p.Static = cmp.Or(p.Static, y.Name)
		}
	}
	return bySection
}

// cut cuts a section's code into functions. Each ends where the next begins.
func (p *parser) cut(sec int, name string, code []Insn, syms []elf.Symbol) {
	slices.SortStableFunc(syms, func(a, b elf.Symbol) int {
		return cmp.Or(cmp.Compare(a.Value, b.Value), cmp.Compare(elf.ST_BIND(b.Info), elf.ST_BIND(a.Info)))
	})
	syms = slices.CompactFunc(syms, func(a, b elf.Symbol) bool { return a.Value == b.Value })
	first := len(p.Funcs)
	for k, y := range syms {
		start, end := y.Value/asm.InstructionSize, uint64(len(code))
		if k+1 < len(syms) {
			end = min(end, syms[k+1].Value/asm.InstructionSize)
		}
		if start >= end {
			continue
		}
		vis := elf.ST_VISIBILITY(y.Other)
		p.Funcs = append(p.Funcs, Function{
			Name: y.Name, Section: name, Start: int(start), Insns: code[start:end],
			Global: elf.ST_BIND(y.Info) != elf.STB_LOCAL && vis != elf.STV_HIDDEN && vis != elf.STV_INTERNAL,
		})
	}
	p.code[sec] = span{first, len(p.Funcs)}
}

// at returns the instruction in a slot of a section.
func (p *parser) at(s span, slot int) (Site, bool) {
	n, exact := slices.BinarySearchFunc(p.Funcs[s.first:s.end], slot, func(f Function, slot int) int {
		return cmp.Compare(f.Start, slot)
	})
	if !exact {
		n--
	}
	if n < 0 {
		return Site{}, false
	}
	at := Site{s.first + n, slot - p.Funcs[s.first+n].Start}
	return at, at.Insn < len(p.Funcs[at.Fn].Insns)
}

// function sets the function that in refers to, which begins in a slot of a section.
func (p *parser) function(in *Insn, s span, slot int) {
	in.Ref = RefTo(RefFunc, -1)
	if at, ok := p.at(s, slot); ok && at.Insn == 0 {
		in.Ref = RefTo(RefFunc, at.Fn)
	}
}

// relSize is the size of an Elf64_Rel, bytes.
const relSize = 16

// readRelocations sets what instructions refer to.
func (p *parser) readRelocations() error {
	for _, s := range p.file.Sections {
		code, ok := p.code[int(s.Info)]
		if s.Type != elf.SHT_REL || !ok {
			continue
		}
		if err := p.readRelocationsOf(s, code); err != nil {
			return err
		}
	}
	p.resolveCalls()
	return nil
}

// readRelocationsOf reads the relocations in section s, which are those of code.
func (p *parser) readRelocationsOf(s *elf.Section, code span) error {
	b, err := p.bytes(s)
	if err != nil {
		return err
	}
	for ; len(b) >= relSize; b = b[relSize:] {
		if !p.spent.relocations.Step(1) {
			return fmt.Errorf("%s: %w", s.Name, p.spent.relocations.Err())
		}
		off, info := p.Order.Uint64(b), p.Order.Uint64(b[8:])
		n := info >> 32 // the symbol, from 1
		if n < 1 || n > uint64(len(p.syms)) || off%asm.InstructionSize != 0 {
			continue
		}
		if at, ok := p.at(code, int(off/asm.InstructionSize)); ok {
			p.relocate(&p.Funcs[at.Fn].Insns[at.Insn], &p.syms[n-1])
		}
	}
	return nil
}

// resolveCalls sets the callees of calls without a relocation, which are relative.
func (p *parser) resolveCalls() {
	for _, s := range p.code {
		for fn := s.first; fn < s.end; fn++ {
			f := &p.Funcs[fn]
			for i := range f.Insns {
				if in := &f.Insns[i]; in.IsFuncCall() && in.Ref.Kind() == RefNone {
					p.function(in, s, f.Start+i+1+int(in.Imm))
				}
			}
		}
	}
}

func (p *parser) relocate(in *Insn, y *elf.Symbol) {
	s := p.section(y)
	code, isCode := p.code[int(y.Section)]
	isSection := elf.ST_TYPE(y.Info) == elf.STT_SECTION
	switch {
	case y.Section == elf.SHN_UNDEF:
		in.Ref = RefTo(RefExtern, p.extern(y.Name))
	case s == nil:
	case isCode && in.Op == OpCall:
		to := int(y.Value / asm.InstructionSize)
		if isSection {
			to += int(in.Imm) + 1
		}
		p.function(in, code, to)
	case isCode && in.Op == OpLdImm64:
		p.function(in, code, int((int64(y.Value)+in.Imm)/asm.InstructionSize))
	case in.Op != OpLdImm64:
	case isMapSection(s.Name):
		in.Ref = RefTo(RefMap, p.mapNamed(y.Name))
	default:
		if !isData(s.Name) {
			p.Unread = cmp.Or(p.Unread, s.Name)
		}
		in.Ref = RefTo(RefData, -1)
		if n, ok := p.frozen[int(y.Section)]; ok {
			in.Ref = RefTo(RefData, n)
		}
		if !isSection {
			in.Imm = 0
		}
		in.Imm += int64(y.Value)
	}
}
