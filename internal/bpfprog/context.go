// SPDX-License-Identifier: Apache-2.0

package bpfprog

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/limits"
)

// Access is an instruction that reads or writes a program's context, or reads
// what an argument in it points to, or a struct of the kernel that a helper returned; or one
// that accesses a value of a map beyond its end.
type Access struct {
	At     Site
	Map    *Map   // of which it accesses a value, at an offset of at most Off; nil for none
	Arg    int    // the eight bytes of the context, from 0, that the address was loaded from; -1 for none
	Struct string // the struct of the kernel of which a helper returned the address; "" for none
	Off    int64  // bytes; where the instruction has a CO-RE record, without its own offset, which the loader replaces
	Size   int    // bytes
	Write  bool

	Moved    bool // something was added to the context's address; it is in Off
	Computed bool // what was added is not known, and is not in Off
	Given    bool // the address was kept on the stack meanwhile, in memory that a helper was given to read; not of the context's
}

// Accesses returns the accesses of a program in its own function and in the
// static functions to which it hands the context or an argument, in order of the
// code. Each is what it says whenever the instruction is executed: of addresses that
// differ between the paths to an instruction nothing is said. When there are no steps left it gives up and says nothing.
func (o *Object) Accesses(p *Program, steps *limits.Meter) []Access {
	f := flow{o: o, steps: steps, exposed: make(map[int]int64), leaders: make(map[int][]bool)}
	// Which slots of the stack others can write to is known only once all has been
	// looked at; the second round does not trust these.
	for range 2 {
		f.at, f.plain = make(map[Site]*addresses), make(map[int]bool)
		s := &addresses{}
		s.regs[asm.R1].kind = ofContext
		f.arrive(Site{Fn: p.Fn}, s)
		for len(f.work) > 0 {
			at := f.work[len(f.work)-1]
			f.work = f.work[:len(f.work)-1]
			f.block(at, nil)
		}
	}
	found := make(map[Site]Access)
	known := f.known(p)
	for at := range f.at {
		if known[at.Fn] {
			f.block(at, found)
		}
	}
	if steps.Err() != nil {
		return nil
	}
	return slices.SortedFunc(maps.Values(found), func(a, b Access) int {
		return cmp.Or(cmp.Compare(a.At.Fn, b.At.Fn), cmp.Compare(a.At.Insn, b.At.Insn))
	})
}

// address is what is known of a register or of a slot of the stack. The zero
// value is nothing.
type address struct {
	kind     addressKind
	arg      int   // of ofArg; of ofMap and ofMapValue, the map's index; of ofResult, the helper
	off      int64 // bytes from the context's beginning, from where the argument or the value begins, or from the top of the stack; a number
	span     int64 // of ofMapValue: how much a number that was added can be
	computed bool  // as of Access
	given    bool  // as of Access
}

type addressKind uint8

const (
	ofNothing addressKind = iota
	ofContext
	ofArg
	ofResult
	ofStack
	ofMap
	ofMapValue // of a map
	isNumber   // off
	isBounded  // a number of which verifiers know no more than that off has all bits that it may have
)

// typed reports whether an address is one of the kernel's, of which the verifier knows the type.
func (a address) typed() bool { return a.kind == ofArg || a.kind == ofResult }

// resultStruct has the helpers that return the address of a struct which the verifier goes by:
// those with RET_PTR_TO_BTF_ID and RET_PTR_TO_BTF_ID_OR_NULL in the kernel's net/core/filter.c and
// kernel/trace/bpf_trace.c.
var resultStruct = map[asm.BuiltinFunc]string{
	asm.FnSkcToTcp6Sock:        "tcp6_sock",
	asm.FnSkcToTcpSock:         "tcp_sock",
	asm.FnSkcToTcpTimewaitSock: "tcp_timewait_sock",
	asm.FnSkcToTcpRequestSock:  "tcp_request_sock",
	asm.FnSkcToUdp6Sock:        "udp6_sock",
	asm.FnSkcToUnixSock:        "unix_sock",
	asm.FnSkcToMptcpSock:       "mptcp_sock",
	asm.FnGetCurrentTaskBtf:    "task_struct",
	asm.FnTaskPtRegs:           "pt_regs",
	asm.FnSockFromFile:         "socket",
}

// addresses is what is known before an instruction.
type addresses struct {
	regs  [10]address
	stack map[int64]address // slots of 8 bytes, by offset; those of nothing are left out
}

func (s *addresses) clone() *addresses { return &addresses{s.regs, maps.Clone(s.stack)} }

// flow follows addresses through a program. It keeps what is the same on all
// paths to an instruction.
type flow struct {
	o       *Object
	steps   *limits.Meter       // instructions, calls of what is not followed, and slots of the stack where paths meet
	at      map[Site]*addresses // where paths meet
	work    []Site
	leaders map[int][]bool // by function: places where paths can meet
	exposed map[int]int64  // by function: others can write to the stack from this offset on
	plain   map[int]bool   // functions that are called with nothing to follow, too
}

// known returns the functions of which all calls in the program were followed:
// what is called by one that is not known is not known either.
func (f *flow) known(p *Program) map[int]bool {
	known := make(map[int]bool)
	for at := range f.at {
		known[at.Fn] = true
	}
	unknown := slices.DeleteFunc(slices.Clone(p.Funcs), func(fn int) bool { return known[fn] })
	for len(unknown) > 0 {
		caller := unknown[len(unknown)-1]
		unknown = unknown[:len(unknown)-1]
		for _, fn := range f.o.calls[caller] {
			f.steps.Step(1)
			if known[fn] && fn != p.Fn {
				delete(known, fn)
				unknown = append(unknown, fn)
			}
		}
	}
	return known
}

// arrive goes on at a place later, if that tells something new: what is not the
// same as on the paths before is forgotten.
func (f *flow) arrive(at Site, s *addresses) {
	code := f.o.Funcs[at.Fn].Insns
	if at.Insn < 0 || at.Insn >= len(code) {
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
	changed := false
	for r := range old.regs {
		a, b := old.regs[r], s.regs[r]
		if a == b {
			continue
		}
		if !dead(code[at.Insn:], asm.Register(r)) {
			f.lose(at.Fn, a)
			f.lose(at.Fn, b)
		}
		if a.kind != ofNothing {
			old.regs[r], changed = address{}, true
		}
	}
	for off, a := range old.stack {
		if s.stack[off] != a {
			delete(old.stack, off)
			changed = true
		}
	}
	if changed {
		f.work = append(f.work, at)
	}
}

// dead reports whether code surely does not use what is in a register, as far as that is seen
// before the first jump. It looks at the first instructions only.
func dead(code []Insn, r asm.Register) bool {
	const most = 16
	for i := 0; i < min(most, len(code)); i += code[i].Slots() {
		in := &code[i]
		fromReg := in.Op.Source() == asm.RegSource
		var reads, writes bool
		switch c := in.Op.Class(); {
		case c.IsALU():
			mov := in.Op.ALUOp() == asm.Mov
			reads, writes = fromReg && in.Src == r || !mov && in.Dst == r, in.Dst == r
		case c == asm.LdXClass:
			reads, writes = in.Src == r, in.Dst == r
		case in.Op == OpLdImm64:
			writes = in.Dst == r
		case c == asm.StClass, c == asm.StXClass:
			reads = in.Dst == r || in.Src == r
		case in.Op == OpCall:
			reads, writes = r >= asm.R1 && r <= asm.R5, r <= asm.R5
		case in.Op == OpExit:
			return r != asm.R0
		default:
			return false
		}
		if reads || writes {
			return !reads
		}
	}
	return false
}

// lose notes that an address is no longer followed: if it is of the stack, what is
// there and above may be written to.
func (f *flow) lose(fn int, a address) {
	if a.kind == ofStack {
		f.exposed[fn] = min(f.exposed[fn], a.off)
	}
}

// loseAll is lose for an address of which not even the place is known any more.
func (f *flow) loseAll(fn int, a address) {
	if a.kind == ofStack {
		f.exposed[fn] = -512
	}
}

// block follows the code from a place to the next where paths meet, or notes its
// accesses in found.
func (f *flow) block(at Site, found map[Site]Access) {
	code := f.o.Funcs[at.Fn].Insns
	leaders, ok := f.leaders[at.Fn]
	if !ok {
		leaders = meetings(code)
		f.leaders[at.Fn] = leaders
	}
	s := f.at[at].clone()
	for first := at.Insn; at.Insn < len(code); {
		if at.Insn != first && leaders[at.Insn] {
			if found == nil {
				f.arrive(at, s)
			}
			return
		}
		if !f.steps.Step(1) {
			return
		}
		in := &code[at.Insn]
		f.step(s, at, in, found)
		if slots, ok := in.Jump(); ok && found == nil {
			f.arrive(Site{at.Fn, at.Insn + 1 + slots}, s)
		}
		if !in.FallsThrough() {
			return
		}
		at.Insn += in.Slots()
	}
}

// meetings marks the targets of jumps.
func meetings(code []Insn) []bool {
	m := make([]bool, len(code))
	for i := range code {
		if slots, ok := code[i].Jump(); ok && i+1+slots >= 0 && i+1+slots < len(m) {
			m[i+1+slots] = true
		}
	}
	return m
}

func (s *addresses) reg(r asm.Register) address {
	switch {
	case r < asm.RFP:
		return s.regs[r]
	case r == asm.RFP:
		return address{kind: ofStack}
	}
	return address{}
}

func (s *addresses) set(r asm.Register, a address) {
	if r < asm.RFP {
		s.regs[r] = a
	}
}

// step follows one instruction.
func (f *flow) step(s *addresses, at Site, in *Insn, found map[Site]Access) {
	switch c := in.Op.Class(); {
	case c.IsALU():
		f.alu(s, at.Fn, in)
	case in.Op == OpLdImm64:
		s.set(in.Dst, address{})
		if r := in.Ref; r.Kind == RefMap {
			s.set(in.Dst, address{kind: ofMap, arg: int(r.N)})
		}
		if r := in.Ref; r.Kind == RefFunc && r.N >= 0 && found == nil { // a callback, with other arguments
			f.arrive(Site{Fn: int(r.N)}, &addresses{})
		}
	case c == asm.LdClass:
		clear(s.regs[asm.R0 : asm.R5+1])
	case c == asm.LdXClass:
		f.load(s, at, in, found)
	case c == asm.StClass, c == asm.StXClass:
		f.store(s, at, in, found)
	case in.Op == OpCall:
		f.handed(s, at, in, found)
		f.call(s, at.Fn, in, found == nil)
	case c.IsJump():
		s.forgetBounds(in)
	}
}

func (f *flow) alu(s *addresses, fn int, in *Insn) {
	a := s.reg(in.Dst)
	fromReg := in.Op.Source() == asm.RegSource
	wide := in.Op.Class() == asm.ALU64Class
	switch op := in.Op.ALUOp(); {
	case op == asm.Mov && wide && fromReg && in.Off == 0:
		s.set(in.Dst, s.reg(in.Src))
		return
	case op == asm.Mov && !fromReg && in.Record == 0 && in.Imm >= 0:
		s.set(in.Dst, address{kind: isNumber, off: in.Imm})
		return
	case op == asm.Mov:
	case op == asm.And && !fromReg && in.Record == 0 && in.Imm >= 0 && a.kind == isBounded:
		a.off &= in.Imm
		s.set(in.Dst, a)
		return
	case op == asm.Add && wide && fromReg && a.kind == ofMapValue && s.reg(in.Src).kind == isBounded:
		s.set(in.Dst, index(a, s.reg(in.Src)))
		return
	case op == asm.Add && wide && fromReg && a.kind == isBounded && s.reg(in.Src).kind == ofMapValue:
		s.set(in.Dst, index(s.reg(in.Src), a))
		return
	case (op == asm.Add || op == asm.Sub) && wide && !fromReg && in.Record == 0 && a.kind != ofNothing && a.kind != isBounded:
		if op == asm.Sub {
			a.off -= in.Imm
		} else {
			a.off += in.Imm
		}
		s.set(in.Dst, a)
		return
	case (op == asm.Add || op == asm.Sub) && wide && a.kind == ofContext:
		if fromReg {
			f.loseAll(fn, s.reg(in.Src))
		}
		a.computed = true
		s.set(in.Dst, a)
		return
	case op == asm.Add && wide && fromReg && s.reg(in.Src).kind == ofContext:
		f.loseAll(fn, a)
		a = s.reg(in.Src)
		a.computed = true
		s.set(in.Dst, a)
		return
	default:
		f.loseAll(fn, a)
	}
	if fromReg {
		f.loseAll(fn, s.reg(in.Src))
	}
	s.set(in.Dst, address{})
}

// randomHelpers return numbers of which verifiers know no bounds.
var randomHelpers = map[asm.BuiltinFunc]int64{
	asm.FnGetPrandomU32: math.MaxUint32, asm.FnKtimeGetNs: math.MaxInt64, asm.FnGetCurrentPidTgid: math.MaxInt64,
}

// holdsValues reports whether look-ups in the map return the address of a value of the size that the map says.
func (m *Map) holdsValues() bool {
	switch ebpf.MapType(m.Type) {
	case ebpf.Hash, ebpf.Array, ebpf.PerCPUHash, ebpf.PerCPUArray, ebpf.LRUHash, ebpf.LRUCPUHash, ebpf.LPMTrie:
		return m.ValueSize > 0 && m.Flags&readOnlyProg == 0 // of those that are frozen verifiers may know what they hold
	}
	return false
}

// readOnlyProg is the flag BPF_F_RDONLY_PROG of maps.
const readOnlyProg = 1 << 7

// mapAt returns the map that an address is of, nil where that is not known.
func (f *flow) mapAt(a address) *Map {
	if a.arg < 0 || a.arg >= len(f.o.Maps) || a.kind != ofMap && a.kind != ofMapValue {
		return nil
	}
	return &f.o.Maps[a.arg]
}

// beyond notes an access of so many bytes of a map's value, if verifiers take it to go beyond the end.
func (f *flow) beyond(a address, off, size int64, at Site, found map[Site]Access) {
	m := f.mapAt(a)
	if a.kind != ofMapValue || m == nil || found == nil {
		return
	}
	if off += a.off + a.span; off+size > int64(m.ValueSize) {
		found[at] = Access{At: at, Map: m, Arg: -1, Off: off, Size: int(size)}
	}
}

// forgetBounds drops the numbers of which a comparison may have told more, under whatever name.
func (s *addresses) forgetBounds(in *Insn) {
	known := func(r asm.Register) bool {
		k := s.reg(r).kind
		return k != ofNothing && k != isBounded
	}
	if _, ok := in.Jump(); !ok || in.Op == OpJa || in.Op == OpGotol || known(in.Dst) && (in.Op.Source() != asm.RegSource || known(in.Src)) {
		return
	}
	for r := range s.regs {
		if s.regs[r].kind == isBounded {
			s.regs[r] = address{}
		}
	}
}

// index is an addition to the address of a map's value.
func index(to, n address) address {
	const most = 1 << 29 // BPF_MAX_VAR_OFF
	if n.off >= most {
		return address{}
	}
	to.span += n.off
	return to
}

// touch notes an access through an address, if that is one to be told.
func (in *Insn) touch(a address, at Site, found map[Site]Access) {
	if found == nil || a.kind != ofContext && !a.typed() {
		return
	}
	x := Access{
		At: at, Arg: -1, Off: a.off, Size: in.Op.Size().Sizeof(), Write: in.Op.Class() != asm.LdXClass,
		Moved: a.kind == ofContext && a.off != 0, Computed: a.computed, Given: a.given,
	}
	switch a.kind {
	case ofArg:
		x.Arg = a.arg
	case ofResult:
		x.Struct = resultStruct[asm.BuiltinFunc(a.arg)]
	}
	if in.Record == 0 {
		x.Off += int64(in.Off)
	}
	found[at] = x
}

func (f *flow) load(s *addresses, at Site, in *Insn, found map[Site]Access) {
	a := s.reg(in.Src)
	in.touch(a, at, found)
	size := int64(in.Op.Size().Sizeof())
	f.beyond(a, int64(in.Off), size, at, found)
	whole := in.Op.Mode() == asm.MemMode && in.Op.Size() == asm.DWord
	off := a.off + int64(in.Off)
	out := address{}
	switch {
	case a.kind == ofMapValue && in.Op.Mode() == asm.MemMode:
		out = address{kind: isBounded, off: math.MaxInt64 >> max(0, 63-8*size)}
	case !whole:
	case a.kind == ofStack:
		out = s.stack[off]
	case a.kind == ofContext && !a.computed && in.Record == 0 && off >= 0 && off%8 == 0:
		out = address{kind: ofArg, arg: int(off / 8)}
	}
	s.set(in.Dst, out)
}

func (f *flow) store(s *addresses, at Site, in *Insn, found map[Site]Access) {
	to := s.reg(in.Dst)
	in.touch(to, at, found)
	f.beyond(to, int64(in.Off), int64(in.Op.Size().Sizeof()), at, found)
	var v address
	if in.Op.Class() == asm.StXClass {
		v = s.reg(in.Src)
	}
	f.lose(at.Fn, v)
	if in.Op.Mode() != asm.MemMode { // an atomic operation, which may return what was there
		s.set(in.Src, address{})
		s.regs[asm.R0] = address{}
	}
	if to.kind != ofStack {
		return
	}
	off, size := to.off+int64(in.Off), int64(in.Op.Size().Sizeof())
	for k := range s.stack {
		if k < off+size && off < k+8 {
			delete(s.stack, k)
		}
	}
	if in.Op.Mode() == asm.MemMode && size == 8 && (v.kind == ofContext || v.typed()) && off+8 <= f.exposed[at.Fn] {
		if s.stack == nil {
			s.stack = make(map[int64]address)
		}
		s.stack[off] = v
	}
}

// memory is what a helper does with memory that an argument points to.
type memory struct {
	at, size asm.Register // the size is in a register, unless it is that of the map in r1
	value    bool         // of the map's values; else of its keys
	writes   bool
}

var (
	ofKey    = memory{at: asm.R2}
	ofValue  = memory{at: asm.R3, value: true}
	ofBuffer = memory{at: asm.R1, size: asm.R2, writes: true}
)

// helperMemory has the helpers by which tracers are mostly given memory. No other argument
// of these is memory that they use.
var helperMemory = map[asm.BuiltinFunc][]memory{
	asm.FnMapLookupElem:      {ofKey},
	asm.FnMapUpdateElem:      {ofKey, ofValue},
	asm.FnMapDeleteElem:      {ofKey},
	asm.FnProbeRead:          {ofBuffer},
	asm.FnProbeReadKernel:    {ofBuffer},
	asm.FnProbeReadUser:      {ofBuffer},
	asm.FnProbeReadStr:       {ofBuffer},
	asm.FnProbeReadKernelStr: {ofBuffer},
	asm.FnProbeReadUserStr:   {ofBuffer},
	asm.FnGetCurrentComm:     {ofBuffer},
	asm.FnPerfEventOutput:    {{at: asm.R4, size: asm.R5}},
	asm.FnRingbufOutput:      {{at: asm.R2, size: asm.R3}},
}

// bytes returns how much of its memory a helper uses, false where that is not known.
func (m memory) bytes(o *Object, s *addresses) (int64, bool) {
	if m.size != 0 {
		n := s.regs[m.size]
		return n.off, n.kind == isNumber
	}
	a := s.regs[asm.R1]
	if a.kind != ofMap || a.arg < 0 || a.arg >= len(o.Maps) {
		return 0, false
	}
	if m.value {
		return int64(o.Maps[a.arg].ValueSize), true
	}
	return int64(o.Maps[a.arg].KeySize), true
}

// helper follows what a helper does with the stack. It reports false where that is not known.
func (f *flow) helper(s *addresses, fn int, call asm.BuiltinFunc) bool {
	list, ok := helperMemory[call]
	if !ok {
		return false
	}
	for _, m := range list {
		a := s.regs[m.at]
		n, known := m.bytes(f.o, s)
		switch {
		case a.kind != ofStack:
		case !known:
			return false
		default:
			s.given(a.off, n, m.writes)
		}
	}
	return true
}

// handed notes where a helper is given more of a map's value than there is.
func (f *flow) handed(s *addresses, at Site, in *Insn, found map[Site]Access) {
	if !in.IsHelper() {
		return
	}
	for _, m := range helperMemory[asm.BuiltinFunc(in.Imm)] {
		n, known := m.bytes(f.o, s)
		if m.size != 0 && s.regs[m.size].kind == isBounded {
			n, known = s.regs[m.size].off, s.regs[m.size].off < 1<<29
		}
		if known {
			f.beyond(s.regs[m.at], 0, n, at, found)
		}
	}
}

// given notes that a helper was given memory on the stack.
func (s *addresses) given(off, size int64, writes bool) {
	for k, a := range s.stack {
		switch {
		case k >= off+size || off >= k+8:
		case writes || !a.typed():
			delete(s.stack, k)
		default:
			a.given = true
			s.stack[k] = a
		}
	}
}

// call follows a call. Global functions are verified on their own, whatever is
// handed to them.
func (f *flow) call(s *addresses, fn int, in *Insn, enter bool) {
	if !in.IsHelper() || !f.helper(s, fn, asm.BuiltinFunc(in.Imm)) {
		for r := asm.R1; r <= asm.R5; r++ {
			f.lose(fn, s.regs[r])
		}
	}
	if to := int(in.Ref.N); in.IsFuncCall() && to >= 0 && !f.o.Funcs[to].Global && enter {
		args := &addresses{}
		for r := asm.R1; r <= asm.R5; r++ {
			if a := s.regs[r]; a.kind == ofContext || a.typed() {
				args.regs[r] = a
			}
		}
		_, entered := f.at[Site{Fn: to}]
		f.plain[to] = f.plain[to] || args.regs == [10]address{}
		if entered || !f.plain[to] {
			f.arrive(Site{Fn: to}, args)
		}
	}
	first := s.regs[asm.R1]
	clear(s.regs[asm.R0 : asm.R5+1])
	call := asm.BuiltinFunc(in.Imm)
	switch m := f.mapAt(first); {
	case !in.IsHelper():
	case resultStruct[call] != "":
		s.regs[asm.R0] = address{kind: ofResult, arg: int(call)}
	case call == asm.FnMapLookupElem && m != nil && m.holdsValues():
		s.regs[asm.R0] = address{kind: ofMapValue, arg: first.arg}
	case randomHelpers[call] > 0:
		s.regs[asm.R0] = address{kind: isBounded, off: randomHelpers[call]}
	}
}
