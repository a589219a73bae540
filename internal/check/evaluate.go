// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"context"
	"slices"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/interp"
	"github.com/btfgen/btfgen/internal/limits"
)

// evaluation is one program on one kernel.
type evaluation struct {
	*pairing
	pr       *bpfobj.Program
	out      []Finding
	hook     *hook          // nil where the program is not attached by BTF, or what to is not known
	given    int64          // bytes of the context of a tracepoint, 0 where that is not known
	kind     []absence      // what programs of its kind must not do: accesses to the context, calls of helpers
	may      *bounds        // what it may return; nil for anything
	own      list           // findings on it, except on its code
	explored *exploration   // nil before it is
	noted    []int32        // findings on some code, except those on instructions: numbers in the ledger
	seen     map[int32]bool // noted as a set
	precise  bool           // explore precisely

	explorations explorations // those on which its findings depend; nil before they are made
	doubted      bool         // the exploration was not precise enough for a finding

	ebpfGoOffsets map[int]int64   // what cilium/ebpf writes into a load or store that libbpf makes invalid since it cannot change the width, by record
	ebpfGoPoisons map[int]Finding // why cilium/ebpf makes the instruction of a record invalid into which libbpf writes a number
}

// absence is an instruction that the verifier refuses if it reaches it.
type absence struct {
	at    bpfobj.Site
	f     Finding
	moved bool // only if it reaches it with a context that is not where it was
}

func (e *evaluation) add(f Finding) { e.out = append(e.out, f) }

func (e *evaluation) eachUse(f func(*use)) {
	for _, fn := range e.pr.Funcs {
		for i := range e.o.uses[fn] {
			f(&e.o.uses[fn][i])
		}
	}
}

// code judges the program's code, a second time with a precise exploration where
// the first was not precise enough.
func (e *evaluation) code(ctx context.Context) (list, explorations) {
	findings, x := e.judgeCode(ctx)
	if !e.doubted {
		return findings, x
	}
	again := *e
	again.out, again.precise, again.doubted, again.explorations = nil, true, false, nil
	precise, y := again.judgeCode(ctx)
	if len(y) == 0 || y[0].GaveUp {
		return findings, x
	}
	return precise, append(x, y...)
}

// judgeCode judges everything whose effect depends on whether an instruction can be
// reached. The findings depend on codeKey, and on the values of the records that
// the explorations name, unless all programs before have taken so much that there
// is none.
func (e *evaluation) judgeCode(ctx context.Context) (list, explorations) {
	r := &exploration{Result: new(interp.Result), o: e.o.Object, twin: e.twin()}
	x := explorations{r}
	switch {
	case !e.dependsOnCode():
	case e.work > limits.ObjectWork:
		r.Result, x = &interp.Result{GaveUp: true}, nil
	default:
		if x = e.explorations; x == nil {
			x = e.exploreAll(ctx)
		}
		r = x[0]
	}
	e.explored, e.out, e.noted, e.seen = r, nil, nil, make(map[int32]bool)
	for _, a := range e.kind {
		e.judge(a)
	}
	if e.may != nil {
		e.judgeReturns(r, e.may)
	}
	if len(x) > 0 {
		e.judgeBounds(x)
	}
	for _, fn := range e.pr.Funcs {
		if e.lacks(fn) {
			e.collect(fn)
		}
	}
	for _, f := range e.out {
		e.noteNumber(e.found.number(f))
	}
	return e.found.keep(e.noted), x
}

// dependsOnCode reports whether findings depend on what an exploration finds.
func (e *evaluation) dependsOnCode() bool {
	return e.bounded() || len(e.kind) > 0 || e.may != nil || slices.ContainsFunc(e.pr.Funcs, e.lacks)
}

// exploreAll explores the program in each way on which its findings depend.
func (e *evaluation) exploreAll(ctx context.Context) explorations {
	r := e.explore(ctx)
	if e.bounded() && !r.GaveUp {
		return append(explorations{r}, e.exploreBounds(ctx, r)...)
	}
	return explorations{r}
}

// explorations are the explorations that the findings on a program depend on; nil if exploring it would take too long.
type explorations []*exploration

// relevant returns the parts of a kernel that they depend on.
func (x explorations) relevant() (all interp.Relevant) {
	for _, r := range x {
		all.Add(r.relevant())
	}
	return all
}

func (x explorations) work() (n int) {
	for _, r := range x {
		n += r.Work
	}
	return n
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

// twin returns the program to explore instead of this one.
func (e *evaluation) twin() *twin {
	if t := e.twins[e.pr]; t != nil {
		return t
	}
	return &twin{o: e.o.Object, pr: e.pr}
}

func (e *evaluation) explore(ctx context.Context) *exploration {
	t := e.twin()
	ours := e.o.Object
	features := e.k.features
	return &exploration{interp.Explore(ctx, t.o, t.pr, &interp.Input{
		Features: features,
		Record:   func(n int) (uint64, bool) { return e.loader.value(t.record(ours, n)) },
		Ksym:     func(x *bpfobj.Extern) interp.Number { return e.ksym(t.extern(x)) },
		Kconfig:  func(x *bpfobj.Extern) interp.Number { return e.k.kconfig(e.o, t.extern(x)) },
		Settable: e.settable,
		Precise:  e.precise,
		Units:    sharedUnits{e, t},
	}), features, ours, t}
}

// collect judges the instructions of a function that must not be reached.
func (e *evaluation) collect(fn int) {
	gone := make(map[bpfobj.Site]bool) // made invalid
	for _, n := range e.o.recordsOf[fn] {
		r := int(n)
		poisoned, refused, reason := e.loader.outcome(r)
		f := e.ebpfGoPoisons[r]
		switch {
		case poisoned && e.loader[r].Unresizable():
			if !e.counts(Libbpf) {
				continue
			}
			f = e.o.records.finding(r, Fails, reason)
			f.Loader = Libbpf
		case poisoned || refused:
			f = e.o.records.finding(r, Fails, reason)
		case f.Code == "":
			continue
		}
		if names := e.modules(r); names != "" {
			f.Status, f.Code, f.Args = MayFail, ModuleNeeded, Args{Names: names}
		}
		if refused {
			f.Stops = ObjectStops
			e.note(f)
			continue
		}
		e.judge(absence{at: e.o.Sites[r], f: f})
		gone[e.o.Sites[r]] = poisoned
	}
	for i := range e.o.uses[fn] {
		u := &e.o.uses[fn][i]
		switch {
		case u.in.IsHelper():
			e.helper(u)
		case u.in.Op == bpfobj.OpCall:
			e.kfunc(u)
		case u.newer != nil && !gone[u.at]:
			e.instruction(u)
		}
	}
}

// mustNotReach judges an instruction that the kernel does not take.
func (e *evaluation) mustNotReach(u *use, f Finding, subject string) {
	f.Status, f.Subject, f.Source = Fails, subject, e.o.Source(u.at)
	e.judge(absence{at: u.at, f: f})
}

func isAttachCookie(in *bpfobj.Insn) bool {
	return in.IsHelper() && asm.BuiltinFunc(in.Imm) == asm.FnGetAttachCookie
}

func (e *evaluation) helper(u *use) {
	if isAttachCookie(u.in) && e.cookieLink() && e.k.lacks(enumLink, linkPerf) {
		e.mustNotReach(u, Finding{Code: LinkTypeCookie}, linkPerf)
	}
	if e.k.lacksHelper(u.in.Imm) {
		e.mustNotReach(u, Finding{Code: HelperMissing}, helperName(u.in.Imm))
	}
}

// kfunc notes a call of a weak kfunc that is absent; of a strong one loaders
// refuse the object before the verifier sees it: see externs.
func (e *evaluation) kfunc(u *use) {
	if x := e.o.extern(u.in); x.Weak && !e.hasKsym(x) {
		e.mustNotReach(u, e.missing(x), x.Name)
	}
}

// oddReach has the Reach for what the analysis cannot follow.
var oddReach = map[interp.Odd]Reach{
	interp.LeavesFunction: LeavesFunction,
	interp.UnnamedAddress: UnnamedAddress,
	interp.UnnamedCall:    UnnamedCall,
	interp.CallsNest:      CallsNest,
}

// judge turns an absence into a finding.
func (e *evaluation) judge(a absence) {
	r := e.explored
	reached := r.reached(a.at)
	if a.moved {
		reached = r.moved(a.at)
	}
	switch l := reached; {
	case l == interp.Certain:
	case l == interp.Depends:
		a.f.Status, a.f.Reach = min(a.f.Status, MayFail), BySettings
	case l == interp.Imprecise:
		e.doubted = true
		a.f.Status, a.f.Reach = min(a.f.Status, MayFail), TooManyPaths
	case r.GaveUp:
		a.f.Status, a.f.Reach = Unknown, TooLarge
	case r.Odd != interp.NothingOdd:
		a.f.Status, a.f.Reach = Unknown, oddReach[r.Odd]
	case a.moved: // nothing was added, or it is not known what
		return
	case a.f.Loader == EbpfGo: // libbpf writes a number, which needs no guard
		return
	default:
		a.f.Status, a.f.Guard = Guarded, e.guard(r, a.at)
	}
	e.note(a.f)
}

// guard returns what keeps the verifier from an instruction.
func (e *evaluation) guard(r *exploration, at bpfobj.Site) Guard {
	g, ok := r.guard(at)
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
