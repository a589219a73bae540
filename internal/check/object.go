package check

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/rawbtf"
	"github.com/btfgen/btfgen/internal/unwrap"
	"github.com/btfgen/btfgen/pkg/relolog"
)

// Object is a BPF object with its code. It is immutable and safe for use by
// many goroutines.
type Object struct {
	name     string
	relo     *relolog.Object
	order    binary.ByteOrder
	btf      *rawbtf.BTF // nil without .BTF
	funcs    []function  // by section, then by offset
	programs []program
	maps     []mapDef
	ops      opsMaps
	data     map[string][]byte // read-only data sections by name
	vars     map[string][]variable
	externs  map[string]extern
	kconfig  map[string]int // sizes of the .kconfig variables, bytes
	pointees []string       // names of both, sorted
	lines    map[string][]line
	reloAt   map[site]int // record of the relocation log at an instruction
}

// function is a function of the object.
type function struct {
	name    string
	section string
	start   int // in the section, in instructions
	insns   []insn
	leader  []bool // by instruction: paths can meet there
	global  bool   // verified on its own
	id      rawbtf.TypeID
}

// program is a function that is loaded, with all that it can call.
type program struct {
	fn      int
	section string
	auto    bool  // loaded unless told otherwise
	funcs   []int // fn first
	relos   []int // records of the relocation log that belong to it
}

// mapDef is a map definition.
type mapDef struct {
	name string
	kind uint32 // enum bpf_map_type
	used []int  // programs
}

// opsMaps says which kinds of struct_ops maps an object has.
type opsMaps struct{ plain, link bool }

// variable is a piece of a data section.
type variable struct {
	name      string
	off, size int64
}

// extern is what the kernel or the loader has to supply.
type extern struct {
	name    string
	weak    bool
	kconfig bool
	id      rawbtf.TypeID // of its VAR or FUNC in .ksyms or .kconfig; 0 when untyped
}

// site is an instruction: its function and its place in there.
type site struct{ fn, insn int }

// Parse reads a BPF ELF object, which data must stay unchanged for.
func Parse(name string, data []byte) (*Object, error) {
	r, err := relolog.ParseObject(name, data)
	if err != nil {
		return nil, err
	}
	o := &Object{
		name: name, relo: r, btf: unwrap.Object(r).BTF(), data: make(map[string][]byte), vars: make(map[string][]variable),
		externs: make(map[string]extern), kconfig: make(map[string]int), lines: make(map[string][]line), reloAt: make(map[site]int),
	}
	p := parser{Object: o}
	if err := p.parse(data); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return o, nil
}

// Name returns the name that was given to Parse.
func (o *Object) Name() string { return o.name }

// Programs returns the number of programs.
func (o *Object) Programs() int { return len(o.programs) }

// parser is one Parse.
type parser struct {
	*Object
	f      *elf.File
	syms   []elf.Symbol
	starts map[int]map[int]int // section index → instruction → function
}

const maxSection = 64 << 20 // bytes of one section that we read

func (p *parser) parse(data []byte) (err error) {
	if p.f, err = elf.NewFile(bytes.NewReader(data)); err != nil {
		return fmt.Errorf("elf: %w", err)
	}
	p.order = p.f.ByteOrder
	if p.syms, err = p.f.Symbols(); err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		return fmt.Errorf("elf: symbols: %w", err)
	}
	p.readExterns()
	if err := p.readData(); err != nil {
		return err
	}
	if err := p.readFuncs(); err != nil {
		return err
	}
	if err := p.readRelocations(); err != nil {
		return err
	}
	p.readMaps()
	p.readLines()
	p.link()
	if len(p.programs) == 0 {
		return errors.New("no program in it")
	}
	return nil
}

func (p *parser) bytes(s *elf.Section) ([]byte, error) {
	if s.Size > maxSection {
		return nil, fmt.Errorf("%s: %d bytes, more than %d", s.Name, s.Size, maxSection)
	}
	if s.Type == elf.SHT_NOBITS {
		return make([]byte, s.Size), nil
	}
	b, err := s.Data()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("file is cut short")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	return b, nil
}

// readExterns finds the names in the .ksyms and .kconfig sections of the BTF,
// which exist there alone.
func (p *parser) readExterns() {
	weak := make(map[string]bool)
	for _, s := range p.syms {
		if s.Section == elf.SHN_UNDEF && elf.ST_BIND(s.Info) == elf.STB_WEAK {
			weak[s.Name] = true
		}
	}
	if p.btf == nil {
		return
	}
	p.eachVar(func(sec string, v rawbtf.Type, _, size uint32) {
		name := string(v.Name())
		e := extern{name: name, weak: weak[name], id: v.ID}
		switch sec {
		case ".ksyms":
			if t, ok := p.btf.SkipMods(v.Ref()); v.Kind() == rawbtf.KindVar && ok && t.Kind() == rawbtf.KindVoid {
				e.id = 0
			}
		case ".kconfig":
			e.kconfig = true
			p.kconfig[name] = int(size)
		default:
			return
		}
		p.externs[name] = e
	})
}

// eachVar calls f for each entry of each DATASEC.
func (o *Object) eachVar(f func(section string, v rawbtf.Type, off, size uint32)) {
	for id := rawbtf.TypeID(1); int(id) < o.btf.NumTypes(); id++ {
		t := o.btf.Type(id)
		if t.Kind() != rawbtf.KindDatasec {
			continue
		}
		for i := range t.Vlen() {
			vi := t.VarSecinfo(i)
			f(string(t.Name()), o.btf.Type(vi.Type), vi.Offset, vi.Size)
		}
	}
}

// readData reads the sections whose content the loader freezes.
func (p *parser) readData() error {
	for i, s := range p.f.Sections {
		if !strings.HasPrefix(s.Name, ".rodata") {
			continue
		}
		b, err := p.bytes(s)
		if err != nil {
			return err
		}
		p.data[s.Name] = b
		for _, y := range p.syms {
			if int(y.Section) == i && elf.ST_TYPE(y.Info) == elf.STT_OBJECT {
				p.vars[s.Name] = append(p.vars[s.Name], variable{y.Name, int64(y.Value), int64(y.Size)})
			}
		}
	}
	return nil
}

// readFuncs cuts the code into functions at the symbols.
func (p *parser) readFuncs() error {
	p.starts = make(map[int]map[int]int)
	bySection := make(map[int][]elf.Symbol)
	for _, y := range p.syms {
		i := int(y.Section)
		t := elf.ST_TYPE(y.Info)
		if i <= 0 || i >= len(p.f.Sections) || t != elf.STT_FUNC && (t != elf.STT_NOTYPE || strings.HasPrefix(y.Name, "LBB")) {
			continue
		}
		if p.f.Sections[i].Flags&elf.SHF_EXECINSTR != 0 && y.Name != "" && y.Value%insnSize == 0 {
			bySection[i] = append(bySection[i], y)
		}
	}
	for i, s := range p.f.Sections {
		if s.Flags&elf.SHF_EXECINSTR == 0 || s.Type != elf.SHT_PROGBITS || s.Size == 0 {
			continue
		}
		code, err := p.bytes(s)
		if err != nil {
			return err
		}
		if len(bySection[i]) == 0 {
			return fmt.Errorf("%s: no function symbols", s.Name)
		}
		p.cut(i, s.Name, decode(code, p.order), bySection[i])
	}
	return nil
}

// cut makes functions of a section's code. They end where the next begins.
func (p *parser) cut(sec int, name string, code []insn, syms []elf.Symbol) {
	slices.SortStableFunc(syms, func(a, b elf.Symbol) int {
		return cmp.Or(cmp.Compare(a.Value, b.Value), cmp.Compare(elf.ST_BIND(b.Info), elf.ST_BIND(a.Info)))
	})
	syms = slices.CompactFunc(syms, func(a, b elf.Symbol) bool { return a.Value == b.Value })
	p.starts[sec] = make(map[int]int)
	for k, y := range syms {
		start, end := y.Value/insnSize, uint64(len(code))
		if k+1 < len(syms) {
			end = min(end, syms[k+1].Value/insnSize)
		}
		if start >= end {
			continue
		}
		vis := elf.ST_VISIBILITY(y.Other)
		p.starts[sec][int(start)] = len(p.funcs)
		p.funcs = append(p.funcs, function{
			name: y.Name, section: name, start: int(start), insns: code[start:end],
			global: elf.ST_BIND(y.Info) != elf.STB_LOCAL && vis != elf.STV_HIDDEN && vis != elf.STV_INTERNAL,
		})
	}
}

// readRelocations tells instructions what they refer to.
func (p *parser) readRelocations() error {
	for _, s := range p.f.Sections {
		if s.Type != elf.SHT_REL || p.starts[int(s.Info)] == nil {
			continue
		}
		b, err := p.bytes(s)
		if err != nil {
			return err
		}
		for ; len(b) >= 16; b = b[16:] {
			off, info := p.order.Uint64(b), p.order.Uint64(b[8:])
			if n := info >> 32; n >= 1 && n <= uint64(len(p.syms)) && off%insnSize == 0 {
				if in := p.insn(int(s.Info), int(off/insnSize)); in != nil {
					p.relocate(in, &p.syms[n-1])
				}
			}
		}
	}
	for sec := range p.starts {
		for _, fn := range p.starts[sec] {
			f := &p.funcs[fn]
			for i := range f.insns {
				if in := &f.insns[i]; in.op == opCall && in.src == pseudoCall && in.ref.kind == refNone {
					in.ref = ref{kind: refFunc, fn: p.function(sec, f.start+i+1+int(in.imm))}
				}
			}
		}
	}
	return nil
}

// insn returns instruction i of a section.
func (p *parser) insn(sec, i int) *insn {
	for _, fn := range p.starts[sec] {
		if f := &p.funcs[fn]; i >= f.start && i < f.start+len(f.insns) {
			return &f.insns[i-f.start]
		}
	}
	return nil
}

// function returns the function that begins at instruction i of a section.
func (p *parser) function(sec, i int) int {
	if fn, ok := p.starts[sec][i]; ok {
		return fn
	}
	return -1
}

func (p *parser) relocate(in *insn, y *elf.Symbol) {
	sec := int(y.Section)
	switch {
	case y.Section == elf.SHN_UNDEF:
		in.ref = ref{kind: refExtern, name: y.Name}
	case sec >= len(p.f.Sections):
	case p.starts[sec] != nil && in.op == opCall:
		to := int(y.Value / insnSize)
		if elf.ST_TYPE(y.Info) == elf.STT_SECTION {
			to += int(in.imm) + 1
		}
		in.ref = ref{kind: refFunc, fn: p.function(sec, to)}
	case p.starts[sec] != nil && in.op == opLdImm64:
		in.ref = ref{kind: refFunc, fn: p.function(sec, int((int64(y.Value)+in.imm64)/insnSize))}
	case in.op != opLdImm64:
	case isMapSection(p.f.Sections[sec].Name):
		in.ref = ref{kind: refMap, name: y.Name}
	default:
		// A section symbol leaves the offset in the instruction.
		off := int64(y.Value)
		if elf.ST_TYPE(y.Info) == elf.STT_SECTION {
			off += in.imm64
		}
		in.ref = ref{kind: refData, name: p.f.Sections[sec].Name, off: off}
	}
}

func isMapSection(name string) bool { return name == ".maps" || name == "maps" }
