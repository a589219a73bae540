// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/interp"
	"github.com/btfgen/btfgen/internal/limits"
)

// evaluation is one program on one kernel.
type evaluation struct {
	*pairing
	pr      *bpfobj.Program
	out     []Finding
	hook    *hook          // nil where the program is not attached by BTF, or what to is not known
	given   int64          // bytes of the context of a tracepoint, 0 where that is not known
	raw     *hook          // the arguments of a raw tracepoint; nil where they are not known
	shape   *shape         // of the context, for run.changed; nil where that is not known, or where it is not read
	kind    []absence      // what depends on its kind or on all of it, in addition to the absences of its functions
	may     *returned      // what it may return; nil for anything
	own     list           // findings on it, except on its code
	noted   []int32        // findings on some code, except those on instructions: numbers in the ledger
	seen    map[int32]bool // noted as a set
	precise bool           // explore precisely

	exploration *interp.Result // nil before it is made
	doubted     bool           // the exploration was not precise enough for a finding

}

// absence is an instruction that the verifier refuses if it reaches it.
type absence struct {
	at     bpfobj.Site
	f      Finding
	flaw   interp.Flaw // only if it reaches it with this
	anyhow bool        // whether it reaches it or not
}

func (e *evaluation) add(f Finding) { e.out = append(e.out, f) }

// addAll adds findings that are not OK.
func (e *evaluation) addAll(all []Finding) {
	for _, f := range all {
		if f.Status != OK {
			e.add(f)
		}
	}
}

func (e *evaluation) eachUse(f func(*use)) {
	for _, fn := range e.pr.Funcs {
		for i := range e.o.uses[fn] {
			f(&e.o.uses[fn][i])
		}
	}
}

// code judges the program's code, a second time with a precise exploration where
// the first was not precise enough. It returns the explorations that the findings depend on, nil if exploring the program would
// take too long.
func (e *evaluation) code(ctx context.Context) (list, []*interp.Result) {
	findings, r := e.judgeCode(ctx)
	switch {
	case r == nil:
		return findings, nil
	case !e.doubted:
		return findings, []*interp.Result{r}
	}
	again := *e
	again.out, again.precise, again.doubted, again.exploration = nil, true, false, nil
	precise, p := again.judgeCode(ctx)
	if p == nil || p.GaveUp {
		return findings, []*interp.Result{r}
	}
	return precise, []*interp.Result{r, p}
}

// judgeCode judges everything whose effect depends on whether an instruction can be
// reached. The findings depend on codeKey, and on the values of the records that
// the exploration names, unless all programs before have taken so much that there
// is none.
func (e *evaluation) judgeCode(ctx context.Context) (list, *interp.Result) {
	r := new(interp.Result)
	gaveUp := false
	switch {
	case !e.dependsOnCode():
	case e.work > limits.ObjectWork:
		r.GaveUp, gaveUp = true, true
	default:
		if r = e.exploration; r == nil {
			r = e.explore(ctx)
		}
	}
	e.out, e.noted, e.seen = nil, nil, make(map[int32]bool)
	for _, a := range e.kind {
		e.judge(r, a)
	}
	for _, fn := range e.pr.Funcs {
		e.absences(fn, func(a absence) { e.judge(r, a) })
	}
	if e.may != nil {
		e.judgeReturns(r, e.may)
	}
	for _, f := range e.out {
		e.noteNumber(e.found.number(f))
	}
	if gaveUp {
		r = nil
	}
	return e.found.keep(e.noted), r
}

// dependsOnCode reports whether findings depend on what an exploration finds.
func (e *evaluation) dependsOnCode() bool {
	return e.may != nil || slices.ContainsFunc(e.kind, func(a absence) bool { return !a.anyhow }) || slices.ContainsFunc(e.pr.Funcs, func(fn int) bool { return e.codeOf(fn).lacks })
}

// note adds a finding on code, once. There may be many, so that only their numbers are kept.
func (e *evaluation) note(f Finding) {
	if f.ofInsn() {
		e.addInsn(f)
		return
	}
	e.noteNumber(e.found.number(f))
}

func (e *evaluation) noteNumber(n int32) {
	if !e.seen[n] {
		e.seen[n] = true
		e.noted = append(e.noted, n)
	}
}

func (e *evaluation) explore(ctx context.Context) *interp.Result {
	return interp.Explore(ctx, e.o.Code, e.pr, &interp.Input{
		Features: e.k.features,
		Record:   e.loader.value,
		Ksym:     e.ksym,
		Kconfig:  func(x *bpfobj.Extern) interp.Number { return e.k.kconfig(e.o, x) },
		Settable: e.settable,
		Precise:  e.precise,
		Units:    sharedUnits{e},
	})
}

// poisonedCall is the helper that loaders call where a relocation does not resolve (bpf_core_poison_insn in libbpf's relo_core.c), and that
// libraries for BPF programs call where control must not get. No kernel has it.
const poisonedCall = 0xbad2310

// absences calls f for the instructions of a function that the kernel does not take, whatever the program is.
func (p *pairing) absences(fn int, f func(absence)) {
	gone := make(map[bpfobj.Site]bool) // made invalid
	for _, n := range p.o.recordsOf[fn] {
		r := int(n)
		poisoned, refused, reason := p.loader.outcome(r)
		alone := poisoned && (p.loader[r].Unresizable() || len(p.loader[r].HiddenIn()) > 0) // not for cilium/ebpf
		if !poisoned && !refused || alone && !p.counts(Libbpf) || refused && p.counts(Aya) {
			continue
		}
		a := absence{at: p.o.Sites[r], f: p.unlessLoaded(r, p.o.records.finding(r, Fails, reason)), anyhow: refused}
		if refused {
			a.f.Stops = ObjectStops
		} else if alone {
			a.f.Loader = Libbpf
		}
		gone[p.o.Sites[r]] = poisoned
		if a.f.Loader == EbpfGo { // for which a module makes up for it
			if p.counts(EbpfGo) {
				f(a)
			}
			if !p.counts(Libbpf) {
				continue
			}
			a.f = p.o.records.finding(r, Fails, reason)
			a.f.Loader = Libbpf
		}
		f(a)
	}
	for i := range p.o.uses[fn] {
		u := &p.o.uses[fn][i]
		a := absence{at: u.at}
		switch {
		case u.in.IsHelper() && u.in.Imm == poisonedCall:
			a.f = Finding{Status: Fails, Code: HelperPoisoned, Subject: fmt.Sprintf("in %s", p.o.Funcs[fn].Name)}
		case u.in.IsHelper():
			if p.k.lacksHelper(u.in.Imm) {
				a.f = Finding{Status: Fails, Code: HelperMissing, Subject: helperName(u.in.Imm), Args: Args{Decided: ByWitness, Witness: helperWitness(u.in.Imm)}}
			}
		case u.in.Op == bpfobj.OpCall:
			// Of a strong kfunc that is absent, loaders refuse the object before the verifier sees it: see strong.
			switch x := p.o.extern(u.in); {
			case x == nil:
				a.f = p.k.judge("function calls", FeatureMissing)
			case x.Weak && !p.hasKsym(x):
				a.f = p.missing(x)
				a.f.Status, a.f.Subject = Fails, x.Name
			case x.Kind == bpfobj.ExternKsym:
				a.f = p.k.judge("kfunc calls", FeatureMissing).named(x.Name)
			}
		case u.newer != nil && !gone[u.at]:
			a.f, a.anyhow = p.instruction(u.newer)
		}
		emit := func() {
			if a.f.Status != OK {
				a.f.Source = p.o.Source(u.at)
				f(a)
			}
		}
		emit()
		for _, fact := range u.facts {
			if u.in.Op == bpfobj.OpCall {
				a.f, a.anyhow = p.judgeGlobal(fact), !p.k.has("verifier global functions if called")
			} else {
				a.f, a.anyhow = p.k.judge(fact, FeatureMissing), true
			}
			emit()
		}
	}
}

// oddReach has the Reach for what the analysis cannot follow.
var oddReach = map[interp.Odd]Reach{
	interp.LeavesFunction: LeavesFunction,
	interp.UnnamedAddress: UnnamedAddress,
	interp.UnnamedCall:    UnnamedCall,
	interp.CallsNest:      CallsNest,
}

// judge turns an absence into a finding by an exploration.
func (e *evaluation) judge(r *interp.Result, a absence) {
	if a.anyhow {
		e.note(a.f)
		return
	}
	switch l := r.With(a.at, a.flaw); {
	case l == interp.Certain:
	case a.f.Status == OK: // a warning is for what is certain
		return
	case l == interp.Depends:
		a.f.Status, a.f.Reach = min(a.f.Status, MayFail), BySettings
	case l == interp.Imprecise:
		e.doubted = true
		a.f.Status, a.f.Reach = min(a.f.Status, MayFail), TooManyPaths
	case r.GaveUp:
		a.f.Status, a.f.Reach = Unknown, TooLarge
	case r.Odd != interp.NothingOdd:
		a.f.Status, a.f.Reach = Unknown, oddReach[r.Odd]
	case a.flaw != interp.NoFlaw: // it has none, or that is not known
		return
	case a.f.Loader == EbpfGo: // libbpf writes a number, which needs no guard
		return
	default:
		a.f.Status, a.f.Guard = Guarded, e.guard(r, a.at)
	}
	e.note(a.f)
}

// guard returns what keeps the verifier from an instruction.
func (e *evaluation) guard(r *interp.Result, at bpfobj.Site) Guard {
	g, ok := r.Guard(at)
	if !ok {
		return Guard{By: Unreachable}
	}
	where := e.o.Source(g.Branch)
	switch f := g.Fact; {
	case f == nil:
		return Guard{By: Constant, Source: where}
	case f.Record < 0:
		return Guard{By: Fact, Name: f.Name, Value: f.V, Source: where}
	default:
		return Guard{By: Fact, Name: e.o.records.text(f.Record), Value: f.V, Source: cmp.Or(e.o.records.source(f.Record), where)}
	}
}

// worst returns the worst status of some findings.
func worst(l []Finding) Status {
	s := OK
	for i := range l {
		s = max(s, l[i].Status)
	}
	return s
}
