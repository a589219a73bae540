// SPDX-License-Identifier: Apache-2.0

package testinput

import (
	"debug/elf"
	"encoding/binary"
	"fmt"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/testing/testelf"
)

// LargeConfig is the size of the object of [Large]. The defaults for zero, given below,
// are about those of the largest tracers.
type LargeConfig struct {
	Programs  int              // 250, each in its own section
	Functions int              // 300, static, in .text; several programs call each
	Records   int              // 35,000 CO-RE relocation records
	Questions int              // 400 distinct ones, if there are enough records
	Order     binary.ByteOrder // little-endian
}

// Large builds a BPF object like those of large tracers, without a compiler. The same
// configuration gives the same bytes.
//
// Its programs read members of the kernel's structs like BPF_CORE_READ, and members of
// the current task also by loads whose type the verifier knows. Some members, types and
// enumerators are missing from some kernels or from all. Code that needs them is guarded
// by bpf_core_field_exists and similar checks, so every program loads on every kernel
// since 4.18.
func Large(c LargeConfig) []byte {
	or := func(n *int, standard int) {
		if *n == 0 {
			*n = standard
		}
	}
	or(&c.Programs, 250)
	or(&c.Functions, 300)
	or(&c.Records, 35_000)
	or(&c.Questions, 400)
	if c.Order == nil {
		c.Order = binary.LittleEndian
	}
	o := largeObject{config: c, btf: btf.NewBuilder(c.Order), plan: planLarge(c.Questions)}
	o.types = o.plan.declare(o.btf)
	o.compile()
	return o.link()
}

// largeObject is an unfinished object.
type largeObject struct {
	config LargeConfig
	plan   *largePlan
	btf    *btf.Builder
	types  localTypes
	text   []*largeFunc
	start  []int // start of each function of text, in slots
	progs  []*largeFunc
}

// compile writes the functions. Each function in the first half of .text calls one of the
// second half, and a program calls three.
func (o *largeObject) compile() {
	a := asker{plan: o.plan}
	n := o.config.Functions + o.config.Programs
	share := func(i int) int { return o.config.Records*(i+1)/n - o.config.Records*i/n }
	slot := 0
	for i := range o.config.Functions {
		f := &largeFunc{name: fmt.Sprintf("large_func_%d", i)}
		f.begin(false)
		a.ask(f, share(i))
		if half := o.config.Functions / 2; i < half {
			f.call(half + i)
		}
		f.end()
		o.text, o.start = append(o.text, f), append(o.start, slot)
		slot += f.slots
	}
	for i := range o.config.Programs {
		f := &largeFunc{name: fmt.Sprintf("large_prog_%d", i)}
		f.begin(true)
		a.ask(f, share(o.config.Functions+i))
		for k := range min(3, o.config.Functions) {
			f.call((3*i + k) % o.config.Functions)
		}
		f.end()
		f.resolve(o.start, 0, false)
		o.progs = append(o.progs, f)
	}
	for i, f := range o.text {
		f.resolve(o.start, o.start[i], true)
	}
}

// link builds the ELF file.
func (o *largeObject) link() []byte {
	const code = elf.SHF_ALLOC | elf.SHF_EXECINSTR
	f := testelf.File{Order: o.config.Order, Type: elf.ET_REL, Machine: elf.EM_BPF}
	ext := extWriter{object: o}

	var text []byte
	f.Symbols = []testelf.Symbol{{Info: byte(elf.STT_SECTION)}}
	for i, fn := range o.text {
		insns := fn.bytes(o.config.Order)
		f.Symbols = append(f.Symbols, testelf.Symbol{Name: fn.name, At: uint64(len(text)), Size: uint64(len(insns)), Info: byte(elf.STT_FUNC)})
		text = append(text, insns...)
		ext.add(".text", fn, o.start[i], o.function(fn.name, 0, o.types.function))
	}
	f.Sections = []testelf.Section{{Name: ".text", Flags: code, Data: text}}

	global := func(t elf.SymType) byte { return elf.ST_INFO(elf.STB_GLOBAL, t) }
	for i, fn := range o.progs {
		name, insns, at := sectionName(i), fn.bytes(o.config.Order), len(f.Sections)
		f.Sections = append(f.Sections, testelf.Section{Name: name, Flags: code, Data: insns})
		if rel := o.relocations(fn); len(rel) > 0 {
			f.Sections = append(f.Sections, testelf.Section{Name: ".rel" + name, Type: elf.SHT_REL, Info: uint32(at + 1), Data: rel})
		}
		f.Symbols = append(f.Symbols, testelf.Symbol{Name: fn.name, Section: at, Size: uint64(len(insns)), Info: global(elf.STT_FUNC)})
		ext.add(name, fn, 0, o.function(fn.name, 1, o.types.program))
	}
	license := []byte("GPL\x00")
	f.Symbols = append(f.Symbols, testelf.Symbol{Name: "_license", Section: len(f.Sections), Size: uint64(len(license)), Info: global(elf.STT_OBJECT)})
	f.Sections = append(f.Sections, testelf.Section{Name: "license", Flags: elf.SHF_ALLOC | elf.SHF_WRITE, Data: license})
	extData := ext.bytes() // adds to the strings of .BTF
	f.Sections = append(f.Sections, testelf.Section{Name: ".BTF", Data: o.btf.Bytes()}, testelf.Section{Name: ".BTF.ext", Data: extData})
	data, _ := f.Build()
	return data
}

// function declares a function; linkage is 0 for a static one.
func (o *largeObject) function(name string, linkage int, proto btf.TypeID) btf.TypeID {
	return o.btf.Type(name, btf.KindFunc, false, linkage, uint32(proto))
}

// relocations returns the relocations of a program's calls, against the section .text,
// which has the first symbol.
func (o *largeObject) relocations(fn *largeFunc) (b []byte) {
	const r32 = 10 // R_BPF_64_32
	for _, c := range fn.calls {
		b = appendAll(b, o.config.Order, uint64(c.slot*asm.InstructionSize), uint64(1)<<32|r32)
	}
	return b
}

// sectionName returns a section name with an attach target.
func sectionName(i int) string {
	tracepoints := []string{"sched_switch", "sched_process_exec", "sched_process_exit", "sched_process_fork", "sched_wakeup", "sys_enter", "sys_exit", "task_rename"}
	functions := []string{"vfs_read", "vfs_write", "vfs_open", "do_exit", "tcp_connect", "tcp_close", "security_file_open", "wake_up_new_task"}
	if i < len(tracepoints) {
		return "raw_tp/" + tracepoints[i]
	}
	i -= len(tracepoints)
	name := "kprobe/" + functions[i%len(functions)]
	if at := i / len(functions); at > 0 {
		name += fmt.Sprintf("+0x%x", 4*at)
	}
	return name
}

// extWriter writes .BTF.ext.
type extWriter struct {
	object   *largeObject
	sections []extSection
	line     uint32
}

// extSection has the records of one ELF section, as 32-bit words.
type extSection struct {
	name                uint32
	funcs, lines, relos []uint32
}

// add adds the records of a function at a slot of a section.
func (w *extWriter) add(section string, fn *largeFunc, at int, id btf.TypeID) {
	name := w.object.btf.String(section)
	if n := len(w.sections); n == 0 || w.sections[n-1].name != name {
		w.sections = append(w.sections, extSection{name: name})
	}
	s := &w.sections[len(w.sections)-1]
	offset := func(slot int) uint32 { return uint32(at+slot) * asm.InstructionSize }
	s.funcs = append(s.funcs, offset(0), uint32(id))
	source := w.object.btf.String("large.bpf.c")
	for _, slot := range fn.lines {
		w.line++
		s.lines = append(s.lines, offset(slot), source, 0, w.line<<10|1)
	}
	for _, r := range fn.relos {
		s.relos = append(s.relos, offset(r.slot), uint32(r.question.id), w.object.btf.String(r.question.access), uint32(r.kind))
	}
}

func (w *extWriter) bytes() []byte {
	order := w.object.config.Order
	part := func(words int, of func(*extSection) []uint32) []byte {
		b := appendAll(nil, order, uint32(4*words))
		for i := range w.sections {
			s := &w.sections[i]
			if records := of(s); len(records) > 0 {
				b = appendAll(b, order, s.name, uint32(len(records)/words), records)
			}
		}
		return b
	}
	funcs := part(2, func(s *extSection) []uint32 { return s.funcs })
	lines := part(4, func(s *extSection) []uint32 { return s.lines })
	relos := part(4, func(s *extSection) []uint32 { return s.relos })

	const header = 32
	b := appendAll(nil, order, uint16(0xeb9f), uint8(1), uint8(0), uint32(header))
	at := 0
	for _, p := range [][]byte{funcs, lines, relos} {
		b = appendAll(b, order, uint32(at), uint32(len(p)))
		at += len(p)
	}
	return append(append(append(b, funcs...), lines...), relos...)
}

// appendAll appends values of fixed size.
func appendAll(b []byte, order binary.ByteOrder, vs ...any) []byte {
	for _, v := range vs {
		var err error
		if b, err = binary.Append(b, order, v); err != nil {
			panic(err) // a bug in this file
		}
	}
	return b
}
