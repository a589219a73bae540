// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"cmp"
	"encoding/binary"
	"strconv"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/interp"
)

// Refusal is an instruction that a kernel refuses if its verifier reaches it. Refusals are comparable.
type Refusal struct {
	At      bpfobj.Site
	Finding Finding
	Flaw    interp.Flaw // only if the verifier reaches it with this
	Anyhow  bool        // whether the verifier reaches it or not
}

// AppendKey appends what identifies a refusal. number numbers findings.
func (r *Refusal) AppendKey(b []byte, number func(Finding) int32) []byte {
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(r.At.Fn)), uint64(r.At.Insn))
	b = strconv.AppendBool(append(b, byte(r.Flaw)), r.Anyhow)
	return binary.NativeEndian.AppendUint32(b, uint32(number(r.Finding)))
}

// oddReach has the Reach for what the analysis cannot follow.
var oddReach = map[interp.Odd]Reach{
	interp.LeavesFunction: LeavesFunction,
	interp.UnnamedAddress: UnnamedAddress,
	interp.UnnamedCall:    UnnamedCall,
	interp.CallsNest:      CallsNest,
}

// JudgeCode calls note for each finding that an exploration of a program makes of its refusals and of what it may return, nil for anything. It
// reports whether the exploration was not precise enough for one.
func (o *Object) JudgeCode(r *interp.Result, refused []Refusal, may *Returned, note func(Finding)) (doubted bool) {
	for i := range refused {
		f, ok := o.judge(r, &refused[i])
		if ok {
			note(f)
			doubted = doubted || f.Reach == TooManyPaths
		}
	}
	if may == nil {
		return doubted
	}
	f, imprecise := o.judgeReturns(r, may)
	if f.Status != OK {
		note(f)
	}
	return doubted || imprecise
}

// judge returns the finding that an exploration makes of a refusal, if any.
func (o *Object) judge(r *interp.Result, refused *Refusal) (f Finding, ok bool) {
	f = refused.Finding
	if refused.Anyhow {
		return f, true
	}
	level := r.With(refused.At, refused.Flaw)
	warning := f.Status == OK
	switch {
	case level == interp.Certain:
	case warning: // it is for what is certain
		return f, false
	case level == interp.Depends:
		f.Status, f.Reach = min(f.Status, MayFail), BySettings
	case level == interp.Imprecise:
		f.Status, f.Reach = min(f.Status, MayFail), TooManyPaths
	case r.GaveUp:
		f.Status, f.Reach = Unknown, TooLarge
	case r.Odd != interp.NothingOdd:
		f.Status, f.Reach = Unknown, oddReach[r.Odd]
	case refused.Flaw != interp.NoFlaw: // the code has none, or that is not known
		return f, false
	case f.Loader == EbpfGo: // libbpf writes a number, which needs no guard
		return f, false
	default:
		f.Status, f.Guard = Guarded, o.guard(r, refused.At)
	}
	return f, true
}

// guard returns what keeps the verifier from an instruction.
func (o *Object) guard(r *interp.Result, at bpfobj.Site) Guard {
	g, ok := r.Guard(at)
	if !ok {
		return Guard{By: Unreachable}
	}
	where := o.Source(g.Branch)
	switch f := g.Fact; {
	case f == nil:
		return Guard{By: Constant, Source: where}
	case f.Record < 0:
		return Guard{By: Fact, Name: f.Name, Value: f.V, Source: where}
	default:
		return Guard{By: Fact, Name: o.records.text(f.Record), Value: f.V, Source: cmp.Or(o.records.source(f.Record), where)}
	}
}
