// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/facts"
	"github.com/btfgen/btfgen/internal/check/interp"
)

// sizes judges the sizes that a program gives to helpers.
func (e *Evaluation) sizes() (l []absence) {
	for _, fn := range e.pr.Funcs {
		for _, x := range e.o.flawed[fn] {
			fact := facts.VerifierBoundsOfLowerHalves
			if x.Flaw == interp.ZeroSize {
				fact = facts.VerifierBoundsOfInequality
			}
			if f := e.k.judge(fact, FeatureMissing); f.Status != OK {
				at := bpfobj.Site{Fn: fn, Insn: int(x.Insn)}
				f.Source = e.o.Source(at)
				l = append(l, absence{at: at, f: f, flaw: x.Flaw})
			}
		}
	}
	return l
}

// withMaps judges the maps that program number n of the object gives to helpers, and what it gives as their keys and values
// (check_map_func_compatibility and check_reg_type in kernel/bpf/verifier.c).
func (e *Evaluation) withMaps(n int) (l []absence) {
	for _, c := range e.o.mapCalls[n] {
		id := e.o.Funcs[c.At.Fn].Insns[c.At.Insn].Imm
		f := Finding{}
		if c.Through {
			f = e.through(&e.o.Maps[c.Map])
		} else if c.Map >= 0 && !e.SetsMap(e.o.Maps[c.Map].Name) && !e.k.lacksHelper(id) {
			f = e.withMap(strings.TrimPrefix(facts.HelperName(id), "bpf_"), facts.MapName(e.o.Maps[c.Map].Type))
			f.Subject, f.Other = facts.HelperName(id), e.o.Maps[c.Map].Name
		}
		if f.Status == OK && c.Ring {
			f = e.k.judge(facts.MemoryOfRingBuffers, FeatureMissing)
		}
		if f.Status != Fails && c.Both {
			f = e.k.judgeLater(facts.TwoReferences, facts.MemoryOfRingBuffers, Linux(6, 18), FeatureMissing)
		}
		if f.Status == OK && c.Given {
			f = e.k.judge(facts.MemoryOfArguments, FeatureMissing)
			f.Status = min(f.Status, e.k.strict()) // older verifiers check it at the call, where it may be allowed
		}
		if f.Status != OK {
			f.Source = e.o.Source(c.At)
			l = append(l, absence{at: c.At, f: f})
		}
	}
	return l
}

// exchanges judges a call of bpf_kptr_xchg by the maps with pointers to objects of the kernel to which the program refers: if the kernel refuses
// all, whichever is meant. Verifiers know the pointer by its tag, and no kernel knows all types of maps with such pointers.
func (e *Evaluation) exchanges(refers map[string]bool) (f Finding) {
	for i := range e.o.Maps {
		m := &e.o.Maps[i]
		if !refers[m.Name] || !slices.ContainsFunc(m.Tags, isKptr) {
			continue
		}
		g := e.pointersIn(m)
		if g.Status == OK {
			return g
		}
		if f.Status == OK || g.Status < f.Status {
			f = g
		}
	}
	return f
}

// isKptr reports whether a tag says that a pointer is one to an object of the kernel.
func isKptr(tag string) bool { return strings.HasPrefix(tag, "kptr") }

// pointersIn judges pointers to objects of the kernel in values of a map, by its type and their tags.
func (e *Evaluation) pointersIn(m *bpfobj.Map) Finding {
	worst := e.withMap("kptr_xchg", facts.MapName(m.Type))
	for _, tag := range m.Tags {
		if g := e.withMap("kptr_xchg", tag); g.Status > worst.Status {
			worst = g
		}
	}
	return worst
}

// through judges an access through a pointer in a value of a map. No kernel takes it for one without a tag, which is not judged. Of several
// tags the best counts, as any may be meant.
func (e *Evaluation) through(m *bpfobj.Map) Finding {
	if !slices.ContainsFunc(m.Tags, isKptr) {
		return Finding{}
	}
	f, best := e.k.judge(facts.PointersInMaps, FeatureMissing), Finding{Status: Fails}
	for _, tag := range m.Tags {
		g := Finding{}
		// The meaning of kptr has changed. Programs can read such pointers on every kernel.
		if tag != "kptr" {
			g = e.withMap("kptr_xchg", tag)
		}
		if g.Status <= best.Status {
			best = g
		}
	}
	if best.Status > f.Status {
		f = best
		f.Code, f.Subject = FeatureMissing, facts.PointersInMaps.UsedBy()
	}
	return f.named(m.Name)
}

// withMap judges a call of a helper with a map of a type, or with a pointer that has a tag.
func (e *Evaluation) withMap(helper, kind string) Finding {
	f := e.k.judge(facts.MapCall(helper, kind), HelperMap)
	if s := e.pr.Attach; f.Status == OK && s != nil {
		of := facts.CallsWithMap(helper, kind)
		p := of[s.ProgType]
		if s.Kind == bpfobj.AttachIter {
			p = of[s.ProgType+"/TRACE_ITER"]
		}
		if any, ok := of[facts.AnyType]; ok {
			p = any
		}
		if gone := p.Until.After; gone == 0 || e.k.atLeast(gone.Next()) || !e.k.dated() {
			f = e.k.permits(p, HelperMap)
		}
	}
	f.Name = kind
	return f
}
