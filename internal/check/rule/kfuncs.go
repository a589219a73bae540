// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/check/facts"
)

// kfuncTag is the declaration tag of functions that programs can call. pahole writes it for kernels since 6.10, from the sets of kfuncs.
const kfuncTag = "bpf_kfunc"

// tag notes that a function has the tag.
func (k *Inventory) tag(b *btf.BTF, id btf.TypeID) {
	if k.kfuncs == nil {
		k.kfuncs = make(map[*btf.BTF]map[btf.TypeID]bool)
	}
	if k.kfuncs[b] == nil {
		k.kfuncs[b] = make(map[btf.TypeID]bool)
	}
	k.kfuncs[b][id] = true
}

// notKfunc reports whether the BTF of a function tags others as kfuncs, and not this one.
func (k *Inventory) notKfunc(y symbol) bool {
	return k.kfuncs[y.view] != nil && !k.kfuncs[y.view][y.id]
}

// kfuncForbidden judges a call of a kfunc that the kernel has by the programs of a section.
func (k *Inventory) kfuncForbidden(s *bpfobj.Section, name string) Finding {
	of := facts.KfuncCallers(name)
	if p, ok := of[facts.NotSleeping]; ok && !maySleep(s) {
		f := k.permits(p, KfuncSleeps)
		f.Name = s.Prefix
		return f
	}
	f := k.permits(of[s.ProgType], KfuncForbidden)
	if refuses, open := facts.KfuncRefuses(name, s.ProgType, s.Type); refuses {
		f = Finding{Status: Fails, Code: KfuncForbidden}
		if open || k.atLeast(facts.KfuncsRead().Next()) {
			f = Finding{Status: MayFail, Code: KfuncForbidden, Args: Args{Decided: ByRelease, Doubt: NotShown}}
		}
	}
	f.Name = s.ProgType
	return f
}

// kfuncCalls judges the kfuncs that the program calls, and that the kernel has, by whether programs of its type may.
func (e *Evaluation) kfuncCalls() (l []absence) {
	s := e.pr.Attach
	if s == nil || s.Kind == bpfobj.AttachOps || s.Kind == bpfobj.AttachExt {
		return nil // the struct_ops or the extended program decides
	}
	e.eachUse(func(u *use) {
		x := e.o.extern(u.in)
		if x == nil || x.Type == 0 || u.in.Op != bpfobj.OpCall || !e.hasKsym(x) {
			return
		}
		// The license counts wherever the call is: add_kfunc_call in kernel/bpf/verifier.c.
		if !e.o.isGPL() {
			f := Finding{
				Status: Fails, Code: KfuncLicense, Subject: x.Name, Source: e.o.Source(u.at),
				Args: Args{Name: e.o.License},
			}
			l = append(l, absence{at: u.at, f: f, anyhow: true})
			return
		}
		if f := e.k.kfuncForbidden(s, btf.Essential(x.Name)); f.Status != OK {
			f.Subject, f.Source = x.Name, e.o.Source(u.at)
			l = append(l, absence{at: u.at, f: f})
		}
	})
	return l
}
