// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"slices"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/facts"
	"github.com/btfgen/btfgen/internal/check/interp"
)

// stackSize is the size in bytes of the stack of a program's functions together (MAX_BPF_STACK).
const stackSize = 512

// stacks is what functions that call each other, or have each other called back, have on the stack together, at most:
// check_max_stack_depth_subprog in kernel/bpf/verifier.c. For example, if a program with 300 bytes calls a function
// with 250, they have 560: each counts in units of 16 bytes. Verifiers that know addresses of functions go to these
// functions, too, unless they are called back later. Such functions have a stack of their own, at which kernels look
// since 6.5, and updates; older ones do not.
type stacks struct {
	in16, in32 int // bytes, in units of 16 bytes and of 32
	calls      int // number of functions
	call       bpfobj.Site
	later      []late
}

// late is a function that is called back later.
type late struct {
	fn   int
	load bpfobj.Site // of its address
}

// lateKfuncs are kfuncs that have a function called later, with the register of its address: is_async_callback_calling_kfunc in
// kernel/bpf/verifier.c.
var lateKfuncs = map[string]asm.Register{
	"bpf_wq_set_callback_impl": asm.R2, "bpf_wq_set_callback": asm.R2,
	"bpf_task_work_schedule_signal_impl": asm.R4, "bpf_task_work_schedule_resume_impl": asm.R4,
	"bpf_task_work_schedule_signal": asm.R4, "bpf_task_work_schedule_resume": asm.R4,
}

// findStacks returns for each function the stacks of it and what it calls. The call is that of the function in which
// the sum becomes too large.
func findStacks(o *bpfobj.Code, calls []callees) []stacks {
	all, done := make([]stacks, len(o.Funcs)), make([]bool, len(o.Funcs))
	var visit func(fn int) stacks
	visit = func(fn int) stacks {
		if done[fn] {
			return all[fn]
		}
		done[fn] = true // no verifier takes functions that call themselves
		own := stackDepth(o.Funcs[fn].Insns)
		var most stacks
		if calls[fn].shared {
			back := callsBack(o.Funcs[fn].Insns)
			for i := range o.Funcs[fn].Insns {
				in := &o.Funcs[fn].Insns[i]
				called := back && in.Op == bpfobj.OpLdImm64 && in.Ref.Kind() == bpfobj.RefFunc
				if in.Ref.N() < 0 || !in.IsFuncCall() && !called {
					continue
				}
				if s := visit(in.Ref.N()); s.in16 > most.in16 || s.in16 == most.in16 && s.in32 > most.in32 {
					most = s
					most.call = bpfobj.Site{Fn: fn, Insn: i}
				}
			}
		}
		most.in16 += (own + 15) &^ 15
		most.in32 += (max(own, 1) + 31) &^ 31
		most.calls++
		most.later = calledLate(o, fn)
		all[fn] = most
		return most
	}
	for fn := range o.Funcs {
		visit(fn)
	}
	return all
}

// calledLate returns the functions that helpers and kfuncs which a function calls have called later.
func calledLate(o *bpfobj.Code, fn int) (l []late) {
	code := o.Funcs[fn].Insns
	if !slices.ContainsFunc(code, func(in bpfobj.Insn) bool { return in.Op == bpfobj.OpLdImm64 && in.Ref.Kind() == bpfobj.RefFunc }) {
		return nil
	}
	interp.EachCallback(code, bpfobj.JumpTargets(code), func(load, call int) {
		in, at := &code[call], asm.Register(0)
		switch {
		case in.IsHelper() && facts.HelperNumbered(in.Imm).CallsLate: // bpf_timer_set_callback
			at = asm.R2
		case in.Op == bpfobj.OpCall && in.Ref.Kind() == bpfobj.RefExtern && in.Ref.N() >= 0:
			at = lateKfuncs[o.Externs[in.Ref.N()].Name]
		}
		if at != 0 && at == code[load].Dst {
			l = append(l, late{code[load].Ref.N(), bpfobj.Site{Fn: fn, Insn: load}})
		}
	})
	return l
}

// callsBack reports whether functions whose address the code loads are certainly called back before the callee with the
// address returns. If a helper calls them later, they have stacks of their own, and perhaps if a kfunc gets them.
func callsBack(code []bpfobj.Insn) bool {
	before := false
	for i := 0; i < len(code); i += code[i].Slots() {
		switch in := &code[i]; {
		case in.Op == bpfobj.OpCall && in.Ref.Kind() == bpfobj.RefExtern:
			return false
		case in.IsHelper():
			if h := facts.HelperNumbered(in.Imm); h.CallsLate {
				return false
			} else if h.CallsBack != nil {
				before = true
			}
		}
	}
	return before
}

// stackDepth returns how many bytes of its stack a function uses: down to the lowest address that it accesses or
// computes as a constant.
func stackDepth(code []bpfobj.Insn) int {
	lowest := int64(0)
	offsets := make(map[asm.Register]int64) // addresses on the stack, by the register with the address
	targets := bpfobj.JumpTargets(code)
	for i := 0; i < len(code); i += code[i].Slots() {
		in := &code[i]
		if targets[i] {
			clear(offsets)
		}
		offsets[asm.RFP] = 0
		if base := in.Dst; in.Op.Class().IsLoad() || in.Op.Class().IsStore() {
			if in.Op.Class().IsLoad() {
				base = in.Src
			}
			if off, ok := offsets[base]; ok && in.Op.Mode() != asm.ImmMode {
				lowest = min(lowest, off+int64(in.Off))
			}
		}
		from, isStack := offsets[in.Src]
		to, wasStack := offsets[in.Dst]
		switch c := in.Op.Class(); {
		case c == asm.LdXClass, c == asm.LdClass, c.IsALU():
			delete(offsets, in.Dst)
		case in.Op == bpfobj.OpCall:
			clear(offsets)
		}
		if in.Op.Class() != asm.ALU64Class {
			continue
		}
		switch op, register := in.Op.ALUOp(), in.Op.Source() == asm.RegSource; {
		case op == asm.Mov && register && isStack:
			offsets[in.Dst] = from
		case op == asm.Add && !register && in.Record == 0 && wasStack:
			offsets[in.Dst] = to + in.Imm
			lowest = min(lowest, to+in.Imm)
		}
	}
	return int(min(-lowest, stackSize))
}

// freshReads judges reads by program number n of the object of bytes of its stack that nothing wrote:
// check_stack_read_fixed_off, check_stack_range_initialized and check_stack_access_within_bounds in
// kernel/bpf/verifier.c. Kernels before 5.10 got no update that allows any, and kernels before 6.1 none for bytes below
// all written ones.
func (e *Evaluation) freshReads(n int) (l []absence) {
	if len(e.o.fresh[n]) == 0 {
		return nil
	}
	within := e.k.judgeLater(facts.ReadingUninitializedStack, facts.VerifierPartlyKnownSpills, Linux(5, 9), FeatureMissing)
	below := e.k.judgeLater(facts.ReadingUnusedStack, facts.StructArguments, Linux(6, 0), FeatureMissing)
	for _, x := range e.o.fresh[n] {
		a := absence{at: x.At, f: within}
		if x.Below {
			a.f = below
		}
		if x.Open {
			a.flaw = interp.OpenSize
		}
		if a.f.Status != OK {
			a.f.Source = e.o.Source(x.At)
			l = append(l, a)
		}
	}
	return l
}

// stacks judges the stacks of functions that call each other.
func (e *Evaluation) stacks() (l []absence) {
	add := func(at bpfobj.Site, f Finding) {
		if f.Status != OK {
			f.Source = e.o.Source(at)
			l = append(l, absence{at: at, f: f})
		}
	}
	add(e.o.stacks[e.pr.Fn].call, e.stack(e.pr.Fn, e.ownStacks))
	if !e.k.has(facts.StacksOfLateCallbacks) {
		return l
	}
	for _, fn := range e.pr.Funcs {
		for _, x := range e.o.stacks[fn].later {
			add(x.load, e.stack(x.fn, func() Finding { return Finding{Status: Fails, Code: MemoryStack} }))
		}
	}
	return l
}

// stack judges the stack of a function with those of its callees. If it is too large, own judges whether each function has one of its own.
func (e *Evaluation) stack(fn int, own func() Finding) Finding {
	s := &e.o.stacks[fn]
	if s.in32 <= stackSize {
		return Finding{}
	}
	bytes, f := s.in16, Finding{}
	if s.in16 <= stackSize {
		f, bytes = e.k.judge(facts.StacksInUnitsOf16Bytes, MemoryStack), s.in32
	} else {
		f = Finding{Status: Fails, Code: MemoryStack}
	}
	if own := own(); own.Status < f.Status || own.Status == f.Status && own.Since != 0 {
		f = own
	}
	if f.Status != OK {
		f.Subject, f.Count, f.Size, f.Max = "stack", int64(s.calls), int64(bytes), stackSize
	}
	return f
}

// ownStacks judges whether each function of the program has a stack of its own: bpf_enable_priv_stack in
// kernel/bpf/verifier.c, bpf_prog_check_recur in include/linux/bpf_verifier.h and bpf_jit_supports_private_stack in
// arch/*/net. A struct_ops may ask for it.
func (e *Evaluation) ownStacks() Finding {
	never, asks := Finding{Status: Fails, Code: MemoryStack}, false
	switch s := e.pr.Attach; {
	case s == nil, s.ProgType == "STRUCT_OPS":
		asks = true
	case s.ProgType == "TRACING" && s.Kind != bpfobj.AttachIter:
	case !slices.Contains([]string{"KPROBE", "TRACEPOINT", "PERF_EVENT", "RAW_TRACEPOINT"}, s.ProgType):
		return never
	}
	machine := facts.PrivateStacksOf(e.k.Arch)
	if machine == facts.Every && e.k.Arch != "x86_64" {
		return never
	}
	own := e.k.judge(facts.PrivateStacks, MemoryStack)
	if own.Status == OK {
		own = e.k.judge(machine, MemoryStack)
	}
	if own.Status == OK && asks {
		return Finding{Status: MayFail, Code: MemoryStack}
	}
	return own
}
