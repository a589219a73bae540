// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"fmt"
	"math"
	"strconv"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/facts"
	"github.com/btfgen/btfgen/internal/check/interp"
)

// extent is the numbers from lo to hi.
type extent struct{ lo, hi int64 }

// String says which they are.
func (s extent) String() string {
	switch s {
	case extent{s.lo, s.lo}:
		return strconv.FormatInt(s.lo, 10)
	case extent{s.lo, s.lo + 1}:
		return fmt.Sprintf("%d or %d", s.lo, s.hi)
	}
	return fmt.Sprintf("%d to %d", s.lo, s.hi)
}

// yesOrNo is the results that every kernel takes of programs of cgroups, and of programs at boolean hooks of LSM.
var yesOrNo = extent{0, 1}

// returned is what a program may return on a kernel.
type returned struct {
	sure   extent  // values that the kernel certainly takes
	widest *extent // values that some kernels take, nil for all
	f      Finding // the verdict on values outside sure and inside widest; OK if the kernel takes them
	any    bool    // the verifier may know numbers that are not known here
}

// returns judges what program number n of the object may return (check_return_code in kernel/bpf/verifier.c). It returns nil if the kernel
// takes what the program can return.
func (e *Evaluation) returns(n int) *returned {
	s := e.pr.Attach
	if s == nil || e.o.returnsZero(e.pr.Fn) && !facts.ReturnsOf(s.ProgType, s.Type).RefusesZero() {
		return nil
	}
	if !facts.ProgramType(s.ProgType).ChecksAttach && e.k.lacks(facts.EnumAttach, s.Type) {
		return nil // the kernel takes it for a program of another type of attachment
	}
	may, differ := facts.Returns(s.Type)
	if !differ {
		values := facts.ReturnsOf(s.ProgType, s.Type)
		if values == nil {
			return nil
		}
		always := extent{values.Lo, values.Hi}
		return &returned{sure: always, widest: &always, f: Finding{Args: Args{Name: s.Prefix}}}
	}
	r := &returned{f: e.k.judge(may.Fact, ReturnRange), sure: extent{may.Lo, may.Hi}}
	if !may.Only {
		r.widest = &extent{may.Lo, may.Hi}
		if r.f.Status != OK {
			r.sure = yesOrNo
		}
	} else {
		r.f = opposite(r.f)
	}
	if h := e.hook; h != nil && s.ProgType == "LSM" {
		switch {
		case h.proto.Ref() == 0:
			return nil // the kernel ignores the result
		case facts.HookNamed(h.lsm()).Boolean:
			r.sure = yesOrNo
		}
		for i := range e.o.accesses[n] {
			a := &e.o.accesses[n][i]
			r.any = r.any || a.Arg < 0 && a.Struct == "" && a.Off == int64(8*h.params())
		}
	}
	if may.Only && r.f.Status == OK {
		return nil
	}
	r.f.Name, r.f.Offset, r.f.Max = s.Prefix, r.sure.lo, r.sure.hi
	return r
}

// opposite turns a finding that a kernel lacks a restriction into one that it has it.
func opposite(f Finding) Finding {
	switch f.Status {
	case OK:
		return Finding{Status: Fails, Code: ReturnRange}
	case Fails:
		return Finding{}
	}
	f.Since = 0
	return f
}

// returnsZero reports whether a function returns 0 alone, as its code shows at once.
func (o *Object) returnsZero(fn int) bool {
	code := o.Funcs[fn].Insns
	targets := bpfobj.JumpTargets(code)
	for i := range code {
		zero := i > 0 && !targets[i] && code[i-1].Op.Class().IsALU() &&
			code[i-1].Op.ALUOp() == asm.Mov && code[i-1].Op.Source() == asm.ImmSource &&
			code[i-1].Dst == asm.R0 && code[i-1].Imm == 0 && code[i-1].Record == 0
		if code[i].Op == bpfobj.OpExit && !zero {
			return false
		}
	}
	return true
}

// of returns the finding on returning a number between two, of status OK if there is none.
func (may *returned) of(lo, hi uint64) Finding {
	f := may.f
	switch {
	case may.sure.includes(lo, hi):
		return Finding{}
	case may.widest != nil && may.widest.excludes(lo, hi):
		f = Finding{
			Status: Fails, Code: ReturnRange,
			Args: Args{Name: f.Name, Offset: may.widest.lo, Max: may.widest.hi},
		}
	case may.sure.excludes(lo, hi), may.widest != nil && hi <= uint64(may.widest.hi):
	case may.widest != nil, may.any: // the verifier may know more
		return Finding{}
	default:
		f.Status, f.Subject = MayFail, "unknown value"
		return f
	}
	f.Subject = "value " + numbers(lo, hi).String()
	return f
}

// judgeReturns judges what a program returns. Of several values the surest is enough.
func (j *judgement) judgeReturns(may *returned) {
	worst := Finding{}
	for _, x := range j.r.Returns() {
		f := may.of(x.Min, x.Max)
		if f.Status == OK {
			continue
		}
		f.Source = j.o.Source(x.At)
		switch x.Level {
		case interp.Depends:
			f.Status, f.Reach = MayFail, BySettings
		case interp.Imprecise:
			j.doubted = true
			f.Status, f.Reach = MayFail, TooManyPaths
		}
		if f.Status > worst.Status || f.Status == worst.Status && f.Reach == Reached && worst.Reach != Reached {
			worst = f
		}
	}
	if worst.Status == OK && j.r.GaveUp && may.f.Status != OK {
		worst = may.f
		worst.Status, worst.Subject, worst.Reach = Unknown, "returned value", TooLarge
	}
	if worst.Status != OK {
		j.note(worst)
	}
}

// numbers are bounds of what a register has as people write them: the half of a negative number is one.
func numbers(lo, hi uint64) extent {
	if lo > math.MaxInt32 && hi <= math.MaxUint32 {
		return extent{int64(int32(lo)), int64(int32(hi))}
	}
	return extent{int64(lo), int64(hi)}
}

// excludes reports whether s has none of the numbers from lo to hi of a register, neither if the whole register counts nor if
// its lower half does.
func (s extent) excludes(lo, hi uint64) bool {
	out := func(lo, hi int64) bool { return lo <= hi && (hi < s.lo || s.hi < lo) }
	return hi-lo <= math.MaxInt32 && out(int64(lo), int64(hi)) && out(int64(int32(lo)), int64(int32(hi)))
}

// includes reports whether s has all of these numbers, if either the whole register or its lower half counts.
func (s extent) includes(lo, hi uint64) bool {
	in := func(lo, hi int64) bool { return s.lo <= lo && lo <= hi && hi <= s.hi }
	return hi-lo <= math.MaxInt32 && (in(int64(lo), int64(hi)) || in(int64(int32(lo)), int64(int32(hi))))
}
