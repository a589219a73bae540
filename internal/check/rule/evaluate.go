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
	e.Refused, e.Returns = slices.Concat(e.Refused, e.accesses(j), e.calls(j), e.stacks(), e.freshReads(j), e.kfuncCalls(), e.reads(j), e.shiftedReads(j), e.bitfields()), e.returns(j)
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

// Refusals returns the instructions of a function that the kernel does not take, whatever the program is.
func (p *Pairing) Refusals(fn int) (l []Refusal) {
	gone := make(map[bpfobj.Site]bool) // made invalid
	for _, n := range p.o.recordsOf[fn] {
		r := int(n)
		poisoned, refused, reason := p.decisions.outcome(r)
		alone := poisoned && (p.decisions[r].Unresizable() || len(p.decisions[r].HiddenIn()) > 0) // not for cilium/ebpf
		alone = alone || refused && p.alone(r)
		if !poisoned && !refused || alone && !p.counts(Libbpf) || refused && p.counts(Aya) {
			continue
		}
		a := Refusal{At: p.o.Sites[r], Finding: p.unlessLoaded(r, p.o.records.finding(r, Fails, reason)), Anyhow: refused}
		if refused {
			a.Finding.Stops = ObjectStops
		}
		if alone {
			a.Finding.Loader = Libbpf
		}
		gone[p.o.Sites[r]] = poisoned
		if a.Finding.Loader == EbpfGo { // for which a module makes up for it
			if p.counts(EbpfGo) {
				l = append(l, a)
			}
			if !p.counts(Libbpf) {
				continue
			}
			a.Finding = p.o.records.finding(r, Fails, reason)
			a.Finding.Loader = Libbpf
		}
		l = append(l, a)
	}
	for i := range p.o.uses[fn] {
		u := &p.o.uses[fn][i]
		f, anyhow := p.needOf(fn, u, gone[u.at])
		if f.Status != OK {
			f.Source = p.o.Source(u.at)
			l = append(l, Refusal{At: u.at, Finding: f, Anyhow: anyhow})
		}
		for _, fact := range u.facts {
			f, anyhow := Finding{}, true
			if u.in.Op == bpfobj.OpCall {
				f, anyhow = p.judgeGlobal(fact), !p.k.has(facts.VerifierGlobalFunctionsIfCalled)
			} else {
				f = p.k.judge(fact, FeatureMissing)
			}
			if f.Status != OK {
				f.Source = p.o.Source(u.at)
				l = append(l, Refusal{At: u.at, Finding: f, Anyhow: anyhow})
			}
		}
	}
	return l
}

// needOf judges what an instruction uses, and says whether verifiers look at it even if they do not reach it. gone says that the loader makes
// the instruction invalid.
func (p *Pairing) needOf(fn int, u *use, gone bool) (f Finding, anyhow bool) {
	switch {
	case u.in.IsHelper() && u.in.Imm == poisonedCall:
		return Finding{Status: Fails, Code: HelperPoisoned, Subject: fmt.Sprintf("in %s", p.o.Funcs[fn].Name)}, false
	case u.in.IsHelper():
		if p.k.lacksHelper(u.in.Imm) {
			f = Finding{Status: Fails, Code: HelperMissing, Subject: facts.HelperName(u.in.Imm), Args: Args{Decided: ByWitness, Witness: facts.HelperEnumerator(u.in.Imm)}}
		}
		return f, false
	case u.in.Op == bpfobj.OpCall:
		return p.called(p.o.extern(u.in)), false
	case u.newer != nil && !gone:
		return p.instruction(u.newer)
	}
	return f, false
}

// called judges the call of a function of the object, if x is nil, or of the kernel. Where a strong kfunc is absent, loaders refuse the object
// before the verifier sees it: see strong.
func (p *Pairing) called(x *bpfobj.Extern) (f Finding) {
	switch {
	case x == nil:
		return p.k.judge(facts.FunctionCalls, FeatureMissing)
	case x.Weak && !p.hasKsym(x):
		f = p.missing(x)
		f.Subject = x.Name
	case x.Kind == bpfobj.ExternKsym:
		f = p.k.judge(facts.KfuncCalls, FeatureMissing)
		if on := p.k.judge(facts.KfuncCallsOn(p.k.Arch), FeatureMissing); on.Status > f.Status {
			f = on
		}
		f = f.named(x.Name)
	}
	return f
}
