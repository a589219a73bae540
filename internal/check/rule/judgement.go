// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"cmp"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/interp"
)

// judgement makes the findings on a program's code that follow from an exploration.
type judgement struct {
	o       *Object
	r       *interp.Result
	note    func(Finding)
	doubted bool // the exploration was not precise enough for a finding
}

// JudgeCode judges everything whose effect depends on whether an instruction can be reached: it calls note for each finding, and reports
// whether the exploration was not precise enough for one. The findings depend on the keys of the program and its functions, and on the
// values of the records that the exploration names, unless it gave up before it began.
func (p *Program) JudgeCode(r *interp.Result, note func(Finding)) (doubted bool) {
	j := &judgement{o: p.scenes[0].o, r: r, note: note}
	for _, a := range p.kind {
		j.judge(a)
	}
	for _, fn := range p.pr.Funcs {
		p.scenes.absences(fn, j.judge)
	}
	if p.may != nil {
		j.judgeReturns(p.may)
	}
	return j.doubted
}

// oddReach has the Reach for what the analysis cannot follow.
var oddReach = map[interp.Odd]Reach{
	interp.LeavesFunction: LeavesFunction,
	interp.UnnamedAddress: UnnamedAddress,
	interp.UnnamedCall:    UnnamedCall,
	interp.CallsNest:      CallsNest,
}

// judge turns an absence into a finding by an exploration.
func (j *judgement) judge(a absence) {
	if a.anyhow {
		j.note(a.f)
		return
	}
	switch l := j.r.With(a.at, a.flaw); {
	case l == interp.Certain:
	case a.f.Status == OK: // warnings are for certain cases only
		return
	case l == interp.Depends:
		a.f.Status, a.f.Reach = min(a.f.Status, MayFail), BySettings
	case l == interp.Imprecise:
		j.doubted = true
		a.f.Status, a.f.Reach = min(a.f.Status, MayFail), TooManyPaths
	case j.r.GaveUp:
		a.f.Status, a.f.Reach = Unknown, TooLarge
	case j.r.Odd != interp.NothingOdd:
		a.f.Status, a.f.Reach = Unknown, oddReach[j.r.Odd]
	case a.flaw != interp.NoFlaw: // the flaw is absent, or not known
		return
	case a.f.Loader == EbpfGo: // libbpf writes a number, which needs no guard
		return
	default:
		a.f.Status, a.f.Guard = Guarded, j.guard(a.at)
	}
	j.note(a.f)
}

// guard returns what keeps the verifier from an instruction.
func (j *judgement) guard(at bpfobj.Site) Guard {
	g, ok := j.r.Guard(at)
	if !ok {
		return Guard{By: Unreachable}
	}
	where := j.o.Source(g.Branch)
	switch f := g.Origin; {
	case f == nil:
		return Guard{By: Constant, Source: where}
	case f.Record < 0:
		return Guard{By: Fact, Name: f.Name, Value: f.V, Source: where}
	default:
		source := cmp.Or(j.o.records.source(f.Record), where)
		return Guard{By: Fact, Name: j.o.records.text(f.Record), Value: f.V, Source: source}
	}
}
