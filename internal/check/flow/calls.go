// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"slices"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/facts"
)

// bytes returns how much of its memory a helper accesses at most; false if that is unknown or not exact.
func (f *flow) bytes(m *facts.Memory, s *addresses) (n int64, exact bool) {
	if m.Size != 0 {
		size := s.regs[m.Size]
		return size.value, size.kind == isNumber
	}
	a := s.regs[asm.R1]
	switch {
	case a.kind != ofMap || a.inMap < 0 || int(a.inMap) >= len(f.code.Maps):
		return 0, false
	case m.Value:
		return int64(f.code.Maps[a.inMap].ValueSize), true
	}
	return int64(f.code.Maps[a.inMap].KeySize), true
}

// helper follows what a helper does with memory. It reports false if it does not know.
func (f *flow) helper(s *addresses, at bpfobj.Site, call asm.BuiltinFunc) bool {
	h := facts.HelperNumbered(int64(call))
	list := h.Memory
	known := list != nil
	filled := f.attach != nil && h.WantsFilled(facts.CallersName(f.attach.ProgType, f.attach.Type))
	for i := range list {
		m := &list[i]
		a := s.regs[m.At]
		n, exact := f.bytes(m, s)
		if a.kind == ofSum || m.Size != 0 && !s.regs[m.Size].constant() {
			f.summed(at)
		}
		switch {
		case a.kind != ofStack:
		case exact && (!m.Writes || filled):
			f.reads(s, at, a.off, n, false)
		case !exact && m.Size != 0:
			// Unless the verifier knows the size, the program has to write all bytes that the helper may access.
			f.reads(s, at, a.off, 1, true)
		}
		if known = known && (exact || a.kind != ofStack); known && a.kind == ofStack {
			s.give(a.off, n, m.Writes)
			s.written.write(a.off, n)
		}
	}
	return known
}

// give hands memory on the stack to a helper.
func (s *addresses) give(off, size int64, writes bool) {
	s.stack = slices.DeleteFunc(s.stack, func(x slot) bool { return x.overlaps(off, size) && (writes || !x.typed()) })
	for i := range s.stack {
		x := &s.stack[i]
		x.given = x.given || x.overlaps(off, size)
	}
}

// call follows a call.
func (f *flow) call(s *addresses, at bpfobj.Site, in *bpfobj.Insn) {
	if in.IsHelper() && f.found != nil {
		f.reportHelper(s, at, in)
	}
	f.giveArguments(s, at, in)
	if to := in.Ref.N(); in.IsFuncCall() && to >= 0 && f.found == nil {
		f.enter(s, to)
	}
	result := helperResult(s.regs[asm.R1], in)
	clear(s.regs[asm.R0 : asm.R5+1])
	s.regs[asm.R0] = result
}

// reportHelper reports what a helper gets: an address in the context, a map, or pointers to the kernel's structs.
func (f *flow) reportHelper(s *addresses, at bpfobj.Site, in *bpfobj.Insn) {
	// R1 is the context itself, if a helper gets it.
	for r := asm.R2; r <= asm.R5; r++ {
		if a := s.regs[r]; a.kind == ofContext && a.off > 0 && !a.computed {
			f.found[at] = Access{At: at, Kind: Passed, Arg: -1, Off: a.off}
		}
	}
	f.withMap(s, at, asm.BuiltinFunc(in.Imm))
	f.hand(s, at, facts.HelperNumbered(in.Imm))
}

// giveArguments notes which bytes of the stack a callee may write. Of some helpers it is known; other callees may keep the addresses.
func (f *flow) giveArguments(s *addresses, at bpfobj.Site, in *bpfobj.Insn) {
	if h := facts.HelperNumbered(in.Imm); !in.IsHelper() || h.CallsBack != nil || h.CallsLate {
		for r := asm.R1; r <= asm.R5; r++ {
			f.lose(s, at.Fn, s.regs[r])
		}
		return
	}
	if f.helper(s, at, asm.BuiltinFunc(in.Imm)) {
		return
	}
	for r := asm.R1; r <= asm.R5; r++ {
		if a := s.regs[r]; a.kind == ofStack {
			f.expose(at.Fn, a)
			s.written.write(a.off, -a.off)
		}
	}
}

// enter queues a function that is called. Global functions are verified on their own, whatever their arguments: they are entered with none.
func (f *flow) enter(s *addresses, to int) {
	args := &addresses{}
	for r := asm.R1; r <= asm.R5; r++ {
		if a := s.regs[r]; !f.code.Funcs[to].Global && (a.kind == ofContext || a.kind == ofMap || a.kind == ofRing || a.typed()) {
			args.regs[r] = a
		}
		if f.memory[to].Has(r) {
			args.regs[r].kind = ofMemory
		}
	}
	f.arrive(bpfobj.Site{Fn: to}, args)
}

// helperResult returns what R0 has after a call: an address, if a helper returns one that is followed. first is the first argument.
func helperResult(first address, in *bpfobj.Insn) address {
	h := facts.HelperNumbered(in.Imm)
	switch {
	case !in.IsHelper():
	case h.GivesValue && first.kind == ofMap && first.inMap >= 0:
		return address{kind: inValue, inMap: first.inMap}
	case h.Result != "":
		return address{kind: ofResult, helper: int32(asm.BuiltinFunc(in.Imm))}
	case h.GivesRing:
		return address{kind: ofRing}
	}
	return address{}
}

// withMap reports a call of a helper with a map.
func (f *flow) withMap(s *addresses, at bpfobj.Site, call asm.BuiltinFunc) {
	x := MapCall{At: at, Map: -1}
	for r := asm.R5; r >= asm.R1; r-- { // the first map counts
		if a := s.regs[r]; a.kind == ofMap && a.inMap >= 0 {
			x.Map = int(a.inMap)
		}
	}
	for _, r := range facts.HelperNumbered(int64(call)).OfMap {
		x.Both = x.Both || x.Ring && s.regs[r].kind == ofRing
		x.Ring = x.Ring || s.regs[r].kind == ofRing
		x.Given = x.Given || s.regs[r].kind == ofMemory
	}
	if x.Map >= 0 || x.Ring || x.Given {
		f.calls[at] = x
	}
}

// dead reports whether code overwrites a register before it reads it. It looks at the first instructions, up to a jump.
func dead(code []bpfobj.Insn, r asm.Register) bool {
	const most = 16
	for i := 0; i < min(most, len(code)); i += code[i].Slots() {
		in := &code[i]
		reads, writes := in.Touches()
		if _, jumps := in.Jump(); jumps || reads.Has(r) {
			return false
		}
		if in.Op == bpfobj.OpExit || writes.Has(r) {
			return true
		}
	}
	return false
}
