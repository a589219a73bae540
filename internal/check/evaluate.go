package check

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/pkg/relolog"
)

// evaluation is one program on one kernel.
type evaluation struct {
	o      *Object
	pr     *program
	k      *kernel
	log    *relolog.Log
	opts   *Options
	out    []Finding
	absent []absence
}

// absence is an instruction that the verifier refuses if it reaches it.
type absence struct {
	at site
	f  Finding
}

// coreKey identifies all that the code of a program depends upon, so that
// kernels with the same key share one exploration.
func (e *evaluation) coreKey() string {
	var b []byte
	for _, r := range e.pr.relos {
		en := &e.log.Entries[r]
		b = append(append(b, en.Result...), 0)
		b = append(append(b, en.Reason...), 0)
		if en.New != nil {
			b = binary.AppendUvarint(b, *en.New)
		}
		b = append(b, 0)
	}
	b = fmt.Appendf(b, "%v", e.k.features)
	var groups [isaCount]bool
	e.eachUse(func(_ site, in *insn) {
		n, newer := in.newer()
		switch {
		case newer:
			groups[n.group] = true
			groups[isaAtomics] = groups[isaAtomics] || n.group == isaAcqRel
		case in.isHelper():
			b = fmt.Appendf(b, " %d%t", in.imm, e.k.hasHelper(in.imm))
			if in.imm == fnAttachCookie {
				b = fmt.Appendf(b, "%t", e.lacks(enumLink, linkPerf))
			}
		case in.ref.kind == refExtern:
			if x, ok := e.o.externs[in.ref.name]; ok && x.kconfig {
				b = fmt.Appendf(b, " %v", e.k.kconfig(x.name))
			} else if ok {
				b = fmt.Appendf(b, " %t", e.ksym(&x))
			}
		}
	})
	for g := range isaCount {
		if groups[g] {
			b = fmt.Appendf(b, " %d:%d", g, e.k.knows(g))
		}
	}
	return string(b)
}

func (e *evaluation) eachUse(f func(site, *insn)) {
	for _, fn := range e.pr.funcs {
		for i := range e.o.funcs[fn].insns {
			f(site{fn, i}, &e.o.funcs[fn].insns[i])
		}
	}
}

// ksym reports whether the kernel has what an extern asks for. An untyped one
// may be any symbol, which BTF does not list.
func (e *evaluation) ksym(x *extern) bool {
	if x.id == 0 {
		return true
	}
	_, why := e.k.resolve(e.o, x)
	return why == ""
}

// code judges everything whose effect depends on whether an instruction can be
// reached. The findings depend on coreKey alone.
func (e *evaluation) code() []Finding {
	e.out = nil
	e.collect()
	if len(e.absent) == 0 {
		return e.out
	}
	x := explore(e.o, e.pr, &inputs{
		features: e.k.features,
		relo: func(r int) (uint64, bool, bool) {
			en := &e.log.Entries[r]
			if en.New == nil {
				return 0, en.Result == relolog.Poisoned, false
			}
			return *en.New, false, true
		},
		ksym:     e.ksym,
		kconfig:  func(x *extern) value { return e.k.kconfig(x.name) },
		settable: e.opts.settable,
	})
	for _, a := range e.absent {
		e.judge(x, a)
	}
	return e.out
}

// collect finds the instructions that must not be reached.
func (e *evaluation) collect() {
	where := make(map[int]site, len(e.pr.relos))
	gone := make(map[site]bool) // replaced by an invalid instruction
	for at, r := range e.o.reloAt {
		where[r] = at
	}
	for _, r := range e.pr.relos {
		en := &e.log.Entries[r]
		f := Finding{Status: Fails, Kind: KindCORE, Subject: en.Relocation(), Reason: en.Reason, Source: en.Source}
		switch en.Result {
		case relolog.Poisoned:
			e.absent = append(e.absent, absence{where[r], f})
			gone[where[r]] = true
		case relolog.Ambiguous, relolog.Error:
			f.Reason = fmt.Sprintf("%s: %s; libbpf refuses the whole object", en.Result, en.Reason)
			e.out = append(e.out, f)
		}
	}
	e.eachUse(func(at site, in *insn) {
		f := Finding{Status: Fails, Source: e.o.source(at)}
		if in.isHelper() && in.imm == fnAttachCookie && e.cookieLink() && e.lacks(enumLink, linkPerf) {
			f := f
			f.Kind, f.Subject, f.Reason = KindLink, linkPerf, "the kernel has no such links, which carry what bpf_get_attach_cookie returns"
			e.absent = append(e.absent, absence{at, f})
		}
		switch {
		case in.isHelper() && len(e.k.helpers) > 0 && !e.k.hasHelper(in.imm):
			f.Kind, f.Subject, f.Reason = KindHelper, helperName(in.imm), "the kernel has no such helper"
		case in.op == opCall && in.ref.kind == refExtern:
			x, ok := e.o.externs[in.ref.name]
			if !ok || e.ksym(&x) {
				return
			}
			_, why := e.k.resolve(e.o, &x)
			f.Kind, f.Subject, f.Reason = KindKfunc, x.name, why
			if !x.weak {
				return // refused before the verifier sees it: see externs
			}
		default:
			if n, ok := in.newer(); ok && !gone[at] {
				e.instruction(at, n)
			}
			return
		}
		e.absent = append(e.absent, absence{at, f})
	})
}

// judge turns an absence into a finding.
func (e *evaluation) judge(x *explorer, a absence) {
	l, reached := x.seen[a.at]
	switch {
	case reached && l == certain:
	case reached && l == depends:
		a.f.Status = min(a.f.Status, MayFail)
		a.f.Reason += "; reached only with some settings of the kernel's build or of the loader"
	case reached:
		a.f.Status = min(a.f.Status, MayFail)
		a.f.Reason += "; too many paths lead there to tell whether it is reached"
	case x.gaveUp:
		a.f.Status = Unknown
		a.f.Reason += "; the program is too large to tell whether it is reached"
	case x.odd != "":
		a.f.Status = Unknown
		a.f.Reason += "; " + x.odd
	default:
		a.f.Status, a.f.Guard = Guarded, x.guard(a.at, e.log)
	}
	if a.f.Kind == KindInsn {
		e.addInsn(a.f)
	} else if !slices.Contains(e.out, a.f) {
		e.out = append(e.out, a.f)
	}
}

// guard says which decided branch keeps the verifier from an instruction: the
// first one found going backwards.
func (x *explorer) guard(at site, log *relolog.Log) string {
	todo, done := []site{at}, map[site]bool{at: true}
	for len(todo) > 0 {
		s := todo[0]
		todo = todo[1:]
		for _, p := range x.predecessors(s) {
			if _, ok := x.seen[p]; ok {
				return x.explain(p, log)
			}
			if !done[p] {
				done[p] = true
				todo = append(todo, p)
			}
		}
	}
	return "nothing leads there"
}

// predecessors returns the instructions after which s may be executed.
func (x *explorer) predecessors(s site) (out []site) {
	f := &x.o.funcs[s.fn]
	if s.insn == 0 {
		for _, fn := range x.pr.funcs {
			for i := range f.callersIn(&x.o.funcs[fn], s.fn) {
				out = append(out, site{fn, i})
			}
		}
	}
	for i := range f.insns {
		in := &f.insns[i]
		next := i + 1
		if in.op == opLdImm64 {
			next++
		}
		falls := in.op != opJA && in.op != opJA32 && in.op != opExit
		jumps := in.op == opJA || in.isCondJump()
		if falls && next == s.insn || jumps && i+1+int(in.off) == s.insn || in.op == opJA32 && i+1+int(in.imm) == s.insn {
			out = append(out, site{s.fn, i})
		}
	}
	return out
}

// callersIn yields the instructions of g that refer to function fn.
func (*function) callersIn(g *function, fn int) func(func(int) bool) {
	return func(yield func(int) bool) {
		for i := range g.insns {
			if r := &g.insns[i].ref; r.kind == refFunc && r.fn == fn && !yield(i) {
				return
			}
		}
	}
}

// explain says what decided a branch.
func (x *explorer) explain(branch site, log *relolog.Log) string {
	d := x.taken[branch]
	where := x.o.source(branch)
	if where != "" {
		where = " (" + where + ")"
	}
	if d == nil || d.src == 0 {
		return "a constant condition" + where
	}
	f := x.facts[d.src-1]
	if f.record < 0 {
		return fmt.Sprintf("%s = %d%s", f.name, f.v, where)
	}
	if src := log.Entries[f.record].Source; src != "" {
		where = " (" + src + ")"
	}
	return fmt.Sprintf("%s = %d%s", log.Entries[f.record].Relocation(), f.v, where)
}

// worst is the verdict that findings come to.
func worst(l []Finding) Status {
	s := OK
	for i := range l {
		s = max(s, l[i].Status)
	}
	return s
}

func sortFindings(l []Finding) {
	slices.SortStableFunc(l, func(a, b Finding) int {
		return cmp.Or(-cmp.Compare(a.Status, b.Status), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Subject, b.Subject), strings.Compare(a.Source, b.Source))
	})
}
