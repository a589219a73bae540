// SPDX-License-Identifier: Apache-2.0

// Package flow follows addresses through a program: of its context, of the memory behind arguments, of structs returned
// by helpers, of maps and their values, and of structs behind pointers in other structs. It says which instructions
// access them, and which helpers get maps.
//
// For example, in
//
//	0  r6 = *(u64 *)(r1 + 8)    // the second argument
//	1  r2 = *(u32 *)(r6 + 40)
//
// the instruction 0 reads the context at 8, and 1 reads argument 1 at 40. An address that differs between two paths is
// not followed after they meet. The results of [Accesses] therefore hold whenever the instruction is executed.
package flow

import (
	"math"
	"slices"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/facts"
	"github.com/btfgen/btfgen/internal/limits"
)

// Access is an instruction that reads or writes a program's context, reads memory behind an argument or a struct of the
// kernel returned by a helper, or makes an address from one of these.
type Access struct {
	At   bpfobj.Site
	Kind AccessKind
	// Arg is the number of the eight bytes of the context that the address was loaded from, -1 for none. If the context is registers, they are
	// numbered by the program's own struct.
	Arg    int
	Struct string // the kernel's struct at an address that a helper returned, "" for none
	// Off is in bytes. It does not include the instruction's own offset if that has a CO-RE record: the loader replaces it.
	Off    int64
	Size   int // bytes
	Write  bool
	Record int // see Typed

	Moved    bool // a constant was added to the context's address; Off includes it
	Computed bool // an unknown number was added; Off does not include it
	Chosen   bool // it reads an argument, and other paths have another argument in its place
	Checked  bool // the argument may have been compared with 0 before
	Given    bool // the address, not the context's, was on the stack in memory that a helper was given to read
}

// Fresh is a read of bytes of the stack that no path to it can have written, by an instruction or a helper.
type Fresh struct {
	At    bpfobj.Site
	Off   int64 // the offset of the first such byte from the top of the stack
	Below bool  // no path can have written lower bytes, or others of its 8 bytes
	Open  bool  // it reads them only if the verifier does not know the size that the helper is given
}

// AccessKind is what an [Access] does.
type AccessKind uint8

// The kinds of accesses.
const (
	Direct AccessKind = iota // it reads or writes
	Typed                    // it adds the value of CO-RE record Record to argument Arg, as if of the record's type
	Passed                   // it gives a helper the address of the context at Off, above 0
	Summed                   // the address or the number of accessed bytes depends on a number that is not a constant
)

// MapCall is a call of a helper with a map, or with memory of a ring buffer as a key or value of a map, or an access
// through a pointer in a value of a map.
type MapCall struct {
	At      bpfobj.Site
	Map     int  // index in Maps, -1 if it is not known
	Ring    bool // the key or value is memory that bpf_ringbuf_reserve returned
	Both    bool // both the key and the value are such memory
	Given   bool // the key or value is memory that a global function was given
	Through bool // an access, not a call of a helper
}

// Accesses returns the accesses of a program in all its functions, its calls with maps, its reads of bytes of the stack
// that nothing wrote, and what it does with pointers in structs, each in order of the code. Each holds whenever the
// instruction is executed: addresses that differ between paths are left out. If it runs out of steps it returns none.
// memory has the arguments of global functions that are pointers to memory.
func Accesses(
	o *bpfobj.Code, p *bpfobj.Program, memory map[int]bpfobj.Registers, steps *limits.Meter,
) ([]Access, []MapCall, []Fresh, Walks) {
	f := flow{
		code: o, attach: p.Attach, memory: memory, steps: steps,
		regs: p.Attach != nil && p.Attach.ProgType == "KPROBE", hooked: hooked(p.Attach),
		exposed: make(map[int]int64), chosen: make(map[int]bool), leaders: make(map[int][]bool),
		numbers: make(map[Place]int32), uses: make(map[bpfobj.Site]WalkUse),
	}
	// The first round finds the stack slots that others can write to; the second does not trust these.
	for range 2 {
		f.at = make(map[bpfobj.Site]*addresses)
		s := &addresses{}
		s.regs[asm.R1].kind = ofContext
		f.arrive(bpfobj.Site{Fn: p.Fn}, s)
		for len(f.work) > 0 {
			at := f.work[len(f.work)-1]
			f.work = f.work[:len(f.work)-1]
			f.block(at)
		}
	}
	f.found, f.calls = make(map[bpfobj.Site]Access), make(map[bpfobj.Site]MapCall)
	f.fresh = make(map[bpfobj.Site]Fresh)
	for at := range f.at {
		f.block(at)
	}
	if steps.Err() != nil {
		return nil, nil, nil, Walks{}
	}
	for at, a := range f.found {
		a.Chosen = a.Kind == Direct && a.Arg < 0 && a.Struct == "" && f.chosen[int(a.Off/8)]
		f.found[at] = a
	}
	f.walks.Uses = inOrder(f.uses)
	return inOrder(f.found), inOrder(f.calls), inOrder(f.fresh), f.walks.used()
}

// inOrder returns what is at sites in order of the code.
func inOrder[T any](of map[bpfobj.Site]T) (l []T) {
	sites := make([]uint64, 0, len(of))
	for at := range of {
		sites = append(sites, uint64(at.Fn)<<32|uint64(at.Insn))
	}
	slices.Sort(sites)
	for _, at := range sites {
		l = append(l, of[bpfobj.Site{Fn: int(at >> 32), Insn: int(at & math.MaxUint32)}])
	}
	return l
}

// flow follows addresses through a program. It keeps what is the same on all paths to an instruction.
type flow struct {
	code    *bpfobj.Code
	attach  *bpfobj.Section            // the program's section, nil for none
	memory  map[int]bpfobj.Registers   // keyed by function; see Accesses
	regs    bool                       // the context is registers: see Access.Arg for their numbers
	steps   *limits.Meter              // instructions, and stack slots where paths meet
	at      map[bpfobj.Site]*addresses // addresses at places where paths meet
	work    []bpfobj.Site
	leaders map[int][]bool         // keyed by function: instructions at which paths can meet
	exposed map[int]int64          // keyed by function: others can write to the stack from this offset on
	chosen  map[int]bool           // arguments: see Access
	found   map[bpfobj.Site]Access // nil while a round only follows addresses
	calls   map[bpfobj.Site]MapCall
	fresh   map[bpfobj.Site]Fresh
	hooked  bool            // see hooked
	walks   Walks           // steps
	numbers map[Place]int32 // indices of steps
	uses    map[bpfobj.Site]WalkUse
}

// arrive merges s into what is known at a place and queues the place if that changed.
func (f *flow) arrive(at bpfobj.Site, s *addresses) {
	if at.Insn < 0 || at.Insn >= len(f.code.Funcs[at.Fn].Insns) {
		return
	}
	old, ok := f.at[at]
	if !ok {
		f.at[at] = s.clone()
		f.work = append(f.work, at)
		return
	}
	if !f.steps.Step(len(old.stack)) {
		return
	}
	before, stack := old.written, len(old.stack)
	for i := range old.written {
		old.written[i] |= s.written[i]
	}
	changed := f.mergeRegs(old, s, at)
	for i := range old.stack {
		if x := &old.stack[i]; s.slot(x.at).checked && !x.checked && x.same(s.slot(x.at)) {
			x.checked, changed = true, true
		}
	}
	old.stack = slices.DeleteFunc(old.stack, func(x slot) bool { return !x.same(s.slot(x.at)) })
	if changed || len(old.stack) < stack || old.written != before {
		f.work = append(f.work, at)
	}
}

// mergeRegs merges the registers of s into those known at a place, and reports whether these changed.
func (f *flow) mergeRegs(old, s *addresses, at bpfobj.Site) (changed bool) {
	code := f.code.Funcs[at.Fn].Insns
	for r := range old.regs {
		a, b := old.regs[r], s.regs[r]
		if a == b {
			continue
		}
		if a.same(b) {
			changed = changed || !a.checked
			old.regs[r].checked = true
			continue
		}
		if !dead(code[at.Insn:], asm.Register(r)) {
			f.lose(old, at.Fn, a)
			f.lose(old, at.Fn, b)
			if a.kind == ofArg && b.kind == ofArg {
				f.chosen[int(a.arg)], f.chosen[int(b.arg)] = true, true
			}
		}
		if a.kind != ofNothing {
			old.regs[r], changed = address{}, true
		}
	}
	return changed
}

// expose is called for an address that others are given: they may write to the stack there and above.
func (f *flow) expose(fn int, a address) {
	if a.kind == ofStack {
		f.exposed[fn] = min(f.exposed[fn], a.off)
	}
}

// lose is called for an address that is no longer followed. A constant may be subtracted from it, so that any byte may
// be written.
func (f *flow) lose(s *addresses, fn int, a address) {
	f.expose(fn, a)
	if a.kind == ofStack {
		s.written.write(-stackSize, stackSize)
	}
}

// loseAll is lose for an address whose offset becomes unknown.
func (f *flow) loseAll(s *addresses, fn int, a address) {
	a.off = -stackSize
	f.lose(s, fn, a)
}

// reads reports a read of bytes of the stack that nothing wrote.
func (f *flow) reads(s *addresses, at bpfobj.Site, off, size int64, open bool) {
	first, ok := s.written.fresh(off, size)
	if _, known := f.fresh[at]; ok && f.fresh != nil && !known {
		f.fresh[at] = Fresh{At: at, Off: first, Below: s.written.lowest() > first|7, Open: open}
	}
}

// block follows the code from a place to the next where paths meet.
func (f *flow) block(at bpfobj.Site) {
	code := f.code.Funcs[at.Fn].Insns
	leaders, ok := f.leaders[at.Fn]
	if !ok {
		leaders = bpfobj.JumpTargets(code)
		f.leaders[at.Fn] = leaders
	}
	s := f.at[at].clone()
	for first := at.Insn; at.Insn < len(code); {
		if at.Insn != first && leaders[at.Insn] {
			if f.found == nil {
				f.arrive(at, s)
			}
			return
		}
		if !f.steps.Step(1) {
			return
		}
		in := &code[at.Insn]
		f.step(s, at, in)
		if slots, ok := in.Jump(); ok {
			f.jump(s, in, bpfobj.Site{Fn: at.Fn, Insn: at.Insn + 1 + slots})
		}
		if !in.FallsThrough() {
			return
		}
		at.Insn += in.Slots()
	}
}

// jump queues the place that an instruction may jump to. If it compares a pointer with 0, the pointer is checked on one of the two paths.
func (f *flow) jump(s *addresses, in *bpfobj.Insn, to bpfobj.Site) {
	compares, ifZero := s.comparesPointer(in)
	there := s
	if compares && !ifZero {
		there = s.clone()
		there.check(s.reg(in.Dst))
	}
	if f.found == nil {
		f.arrive(to, there)
	}
	if compares && ifZero {
		s.check(s.reg(in.Dst))
	}
}

// comparesPointer reports whether a jump compares a pointer with 0, and whether it jumps if it is.
func (s *addresses) comparesPointer(in *bpfobj.Insn) (ok, zero bool) {
	op := in.Op.JumpOp()
	a := s.reg(in.Dst)
	if in.Op.Class() != asm.JumpClass || in.Op.Source() != asm.ImmSource || in.Imm != 0 || !a.checkable() {
		return false, false
	}
	return op == asm.JEq || op == asm.JNE, op == asm.JEq
}

// step follows one instruction.
func (f *flow) step(s *addresses, at bpfobj.Site, in *bpfobj.Insn) {
	switch c := in.Op.Class(); {
	case c.IsALU():
		s.set(in.Dst, f.alu(s, at, in))
	case in.Op == bpfobj.OpLdImm64:
		s.set(in.Dst, address{})
		if in.Ref.Kind() == bpfobj.RefMap {
			s.set(in.Dst, address{kind: ofMap, inMap: int32(in.Ref.N())})
		}
		if in.Ref.Kind() == bpfobj.RefFunc && in.Ref.N() >= 0 && f.found == nil { // a callback has other arguments
			f.arrive(bpfobj.Site{Fn: in.Ref.N()}, &addresses{})
		}
	case c == asm.LdClass:
		clear(s.regs[asm.R0 : asm.R5+1])
	case c == asm.LdXClass:
		f.load(s, at, in)
	case c == asm.StClass, c == asm.StXClass:
		f.store(s, at, in)
	case in.Op == bpfobj.OpCall:
		f.call(s, at, in)
	}
}

// alu returns the result of an arithmetic instruction.
func (f *flow) alu(s *addresses, at bpfobj.Site, in *bpfobj.Insn) address {
	fn, op, wide := at.Fn, in.Op.ALUOp(), in.Op.Class() == asm.ALU64Class
	a, b := s.reg(in.Dst), address{kind: isNumber, value: in.Imm}
	fromReg := in.Op.Source() == asm.RegSource
	if fromReg {
		b = s.reg(in.Src)
	} else if in.Record != 0 {
		b = address{kind: isRecord, record: in.Record - 1}
	}
	if op == asm.Add && wide {
		f.typed(at, a, b)
		f.typed(at, b, a)
	}
	constant := !fromReg && in.Record == 0
	switch {
	case op == asm.Mov && fromReg && wide && in.Off == 0,
		op == asm.Mov && constant && in.Imm >= 0,
		op == asm.Mov && b.kind == isRecord:
		return b
	case op == asm.Add && wide && constant && a.kind != ofNothing && a.kind != isRecord:
		return a.plus(in.Imm)
	case op == asm.Sub && wide && constant && a.kind != ofNothing && a.kind != isRecord:
		return a.plus(-in.Imm)
	case op == asm.Add && wide && a.adds(b):
		a.record = b.record + 1
		return a
	case op == asm.Add && wide && b.adds(a):
		b.record = a.record + 1
		return b
	case (op == asm.Add || op == asm.Sub) && wide && a.kind == ofContext:
		f.loseAll(s, fn, b)
		a.computed = true
		return a
	case op == asm.Add && wide && b.kind == ofContext:
		f.loseAll(s, fn, a)
		b.computed = true
		return b
	case op != asm.Mov:
		f.loseAll(s, fn, a)
	}
	f.loseAll(s, fn, b)
	if (op == asm.Add || op == asm.Sub) && wide && fromReg && !a.constant() && !b.constant() {
		return address{kind: ofSum}
	}
	return address{}
}

// typed reports that the value of a record is added to an argument.
func (f *flow) typed(at bpfobj.Site, arg, record address) {
	if f.found != nil && arg.kind == ofArg && arg.record == 0 && record.kind == isRecord {
		f.found[at] = Access{At: at, Kind: Typed, Arg: int(arg.arg), Record: int(record.record)}
	}
}

// summed reports an access where a number that is not a constant was added, unless something else is known of the
// instruction.
func (f *flow) summed(at bpfobj.Site) {
	if _, ok := f.found[at]; !ok && f.found != nil {
		f.found[at] = Access{At: at, Kind: Summed, Arg: -1}
	}
}

// touch reports the access of an instruction through an address.
func (f *flow) touch(a address, at bpfobj.Site, in *bpfobj.Insn) {
	size := in.Op.Size().Sizeof()
	if f.found != nil && a.kind == ofHeld {
		f.calls[at] = MapCall{At: at, Map: int(a.inMap), Through: true}
	}
	if a.kind == ofSum {
		f.summed(at)
	}
	f.through(a, at, in)
	if f.found == nil || a.kind != ofContext && a.kind != ofArg && a.kind != ofResult || a.typed() && a.record != 0 {
		return
	}
	x := Access{
		At: at, Arg: -1, Off: a.off, Size: size, Write: in.Op.Class() != asm.LdXClass,
		Moved: a.kind == ofContext && a.off != 0, Computed: a.computed, Given: a.given, Checked: a.checked,
	}
	switch a.kind {
	case ofArg:
		x.Arg = int(a.arg)
	case ofResult:
		x.Struct = facts.HelperNumbered(int64(a.helper)).Result
	}
	if in.Record == 0 {
		x.Off += int64(in.Off)
	}
	f.found[at] = x
}

func (f *flow) load(s *addresses, at bpfobj.Site, in *bpfobj.Insn) {
	a, size := s.reg(in.Src), in.Op.Size().Sizeof()
	f.touch(a, at, in)
	whole := in.Op.Mode() == asm.MemMode && size == 8
	off := a.off + int64(in.Off)
	if a.kind == ofStack && in.Record == 0 {
		f.reads(s, at, off, int64(size), false)
	}
	out := address{}
	switch {
	case !whole:
	case a.kind == ofStack:
		out = s.slot(off)
	case a.kind == ofContext && !a.computed && (in.Record == 0 || f.regs) &&
		off >= 0 && off < math.MaxInt32 && off%8 == 0:
		out = address{kind: ofArg, arg: int32(off / 8)}
	case a.typed():
		out = f.walk(a, in)
	case a.kind == inValue:
		out = address{kind: ofHeld, inMap: a.inMap}
	}
	s.set(in.Dst, out)
}

func (f *flow) store(s *addresses, at bpfobj.Site, in *bpfobj.Insn) {
	to, size := s.reg(in.Dst), int64(in.Op.Size().Sizeof())
	f.touch(to, at, in)
	var v address
	if in.Op.Class() == asm.StXClass {
		v = s.reg(in.Src)
	}
	f.lose(s, at.Fn, v)
	if in.Op.Mode() != asm.MemMode { // an atomic operation may return the old value
		s.set(in.Src, address{})
		s.regs[asm.R0] = address{}
	}
	if to.kind != ofStack {
		return
	}
	off := to.off + int64(in.Off)
	if in.Record != 0 {
		f.loseAll(s, at.Fn, to)
	} else if in.Op.Mode() != asm.MemMode {
		f.reads(s, at, off, size, false)
	}
	s.written.write(off, size)
	s.stack = slices.DeleteFunc(s.stack, func(x slot) bool { return x.overlaps(off, size) })
	keeps := in.Op.Mode() == asm.MemMode && size == 8 && (v.kind == ofContext || v.kind == ofSum || v.typed())
	if keeps && off+8 <= f.exposed[at.Fn] && off >= -stackSize {
		s.stack = append(s.stack, slot{off, v})
	}
}
