// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"fmt"
	"slices"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/facts"
)

// Evaluate judges program j of the object without its code.
func (p *Pairing) Evaluate(j int) *Evaluation {
	e := &Evaluation{Pairing: p, pr: &p.o.Programs[j], tail: p.tailCalled(j)}
	if !p.ForKernel() {
		e.add(p.o.otherMachine())
		return e
	}
	e.attachment()
	e.license()
	e.interfaces()
	e.ownTypes()
	e.variables()
	for _, w := range p.needed {
		if f, ok := p.ofProgram(w.f, p.o.refers[j][w.name]); ok {
			e.add(f)
		}
	}
	e.disagreements()
	e.ebpfGoUnit()
	e.kind, e.may = slices.Concat(e.kind, e.accesses(j), e.walks(j), e.calls(j), e.stacks(), e.freshReads(j), e.kfuncCalls(), e.reads(j), e.shiftedReads(j), e.bitfields()), e.returns(j)
	return e
}

// EvaluateCode judges only what the code of program j depends on, where the same program was evaluated on the kernel with modules.
func (p *Pairing) EvaluateCode(j int) *Evaluation {
	e := &Evaluation{Pairing: p, pr: &p.o.Programs[j]}
	e.ebpfGoUnit()
	return e
}

// poisonedCall is the helper that loaders call where a relocation does not resolve (bpf_core_poison_insn in libbpf's relo_core.c), and that
// libraries for BPF programs call where control must not get. No kernel has it.
const poisonedCall = 0xbad2310

// absences calls f for the instructions of a function that the kernel does not take, whatever the program is.
func (p *Pairing) absences(fn int, f func(absence)) {
	gone := make(map[bpfobj.Site]bool) // made invalid
	for _, n := range p.o.recordsOf[fn] {
		r := int(n)
		poisoned, refused, reason := p.decisions.outcome(r)
		alone := poisoned && (p.decisions[r].Unresizable() || len(p.decisions[r].HiddenIn()) > 0) // not for cilium/ebpf
		alone = alone || refused && p.alone(r)
		if !poisoned && !refused || alone && !p.counts(Libbpf) || refused && p.counts(Aya) {
			continue
		}
		a := absence{at: p.o.Sites[r], f: p.unlessLoaded(r, p.o.records.finding(r, Fails, reason)), anyhow: refused}
		if refused {
			a.f.Stops = ObjectStops
		}
		if alone {
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
				a.f = Finding{Status: Fails, Code: HelperMissing, Subject: facts.HelperName(u.in.Imm), Args: Args{Decided: ByWitness, Witness: facts.HelperEnumerator(u.in.Imm)}}
			}
		case u.in.Op == bpfobj.OpCall:
			// Of a strong kfunc that is absent, loaders refuse the object before the verifier sees it: see strong.
			switch x := p.o.extern(u.in); {
			case x == nil:
				a.f = p.k.judge(facts.FunctionCalls, FeatureMissing)
			case x.Weak && !p.hasKsym(x):
				a.f = p.missing(x)
				a.f.Subject = x.Name
			case x.Kind == bpfobj.ExternKsym:
				a.f = p.k.judge(facts.KfuncCalls, FeatureMissing)
				if f := p.k.judge(facts.KfuncCallsOn(p.k.Arch), FeatureMissing); f.Status > a.f.Status {
					a.f = f
				}
				a.f = a.f.named(x.Name)
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
				a.f, a.anyhow = p.judgeGlobal(fact), !p.k.has(facts.VerifierGlobalFunctionsIfCalled)
			} else {
				a.f, a.anyhow = p.k.judge(fact, FeatureMissing), true
			}
			emit()
		}
	}
}
