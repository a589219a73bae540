// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"bytes"
	"context"
	"errors"

	"github.com/cilium/ebpf"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/workers"
	"github.com/btfgen/btfgen/pkg/relo"
)

// ebpfGoLinked judges the records of the program as cilium/ebpf does, together with those of its linked functions, unless
// libbpf refuses an unambiguous one. A refusal is a finding. Instructions made invalid by cilium/ebpf alone are added
// to e.kind. For a type without a match libbpf writes 0 as size and ID, and it accepts IDs of types in modules.
func (e *Evaluation) ebpfGoLinked() {
	if e.loader != EbpfGo || e.Linked == nil {
		return
	}
	for _, r := range e.pr.Records {
		if _, refused, _ := e.outcome(r); refused {
			return // both loaders refuse the record
		}
	}
	finding := func(r int, reason relo.Reason) Finding {
		f := e.o.records.finding(r, Fails, reason)
		f.Loader, f.Stops = EbpfGo, e.loader.stops()
		return f
	}
	refuse := func(r int, reason relo.Reason) { e.add(e.unlessLoaded(r, finding(r, reason))) }
	poison := func(r int, code Code) {
		e.kind = append(e.kind, absence{at: e.o.Sites[r], f: e.unlessLoaded(r, finding(r, relo.Reason{Code: code}))})
	}
	d, err := e.Linked(e.o.Funcs[e.pr.Fn].Section, e.o.Funcs[e.pr.Fn].Name)
	switch {
	case err != nil:
		f := Finding{Status: Unknown, Code: AnalysisRelocations, Subject: "relocations", Loader: EbpfGo}
		if limit := (*limits.Exceeded)(nil); errors.As(err, &limit) {
			f.Max = limit.Max
		}
		e.add(f)
		return
	case d == nil: // a static function
		for _, r := range e.pr.Records {
			if _, refused, reason := e.decisions.outcome(r); refused {
				refuse(r, reason)
			}
		}
		return
	case d.Err != nil:
		refuse(d.Record, core.ReasonOf(EbpfGoRefuses, d.Err))
		return
	}
	for _, r := range e.pr.Records {
		f, ok := d.Fixup(r)
		result := e.decisions[r].Result
		switch {
		case !ok || !result.OK() && len(e.decisions[r].HiddenIn()) == 0 && !e.decidesAlone(r):
		case f.Err != nil:
			refuse(r, core.ReasonOf(EbpfGoRefuses, f.Err))
			return
		case !f.Poison || e.Added && result == relo.Resolved:
		case result == relo.Absent:
			poison(r, relo.NoCandidate)
		case e.o.records.asksForID(r) && len(e.decisions.Modules(r)) > 0:
			poison(r, EbpfGoModuleID)
		default:
			poison(r, EbpfGoNoMatch)
		}
	}
}

// ebpfGoTarget judges whether cilium/ebpf finds the target among the functions of its name (findProgramTargetInKernel
// in its prog.go). It refuses several functions in one BTF, such as those defined again for system calls that are left
// out. For lsm_cgroup it gives the kernel none.
func (e *Evaluation) ebpfGoTarget(subject string, found []symbol) {
	if e.loader != EbpfGo {
		return
	}
	f := Finding{Status: Fails, Subject: subject, Loader: EbpfGo}
	n := 0
	for _, y := range found {
		if y.view == found[0].view {
			n++
		}
	}
	switch {
	case e.pr.Attach.Type == "BPF_LSM_CGROUP":
		f.Code = AttachTargetEbpfGo
	case n > 1:
		f.Code, f.Count = AttachTargetTwice, int64(n)
	default:
		return
	}
	e.add(f)
}

// ebpfGoReads asks cilium/ebpf whether it reads the object. Which of several errors it returns is up to chance, so the
// reason comes from what is known of the object.
func (o *Object) ebpfGoReads(ctx context.Context, data []byte) Finding {
	f := o.ebpfGoHint()
	f.Status, f.Subject, f.Loader = Fails, o.name, EbpfGo
	if o.BTF != nil && o.BTF.NumTypes() > limits.LoaderTypes || o.Unfolded > limits.Inflated {
		return Finding{Status: Unknown, Code: ObjectTooLarge, Subject: o.name, Loader: EbpfGo}
	}
	// A recursion would end the process.
	if o.BTF != nil && btf.CheckRecursion(ctx, o.BTF) != nil {
		return f
	}
	var err error
	if d := workers.Catch(ctx, func() { _, err = ebpf.LoadCollectionSpecFromReader(bytes.NewReader(data)) }); d != nil {
		err = d
	}
	if err != nil {
		return f
	}
	return Finding{}
}

// EbpfGoUnread returns why cilium/ebpf does not read an object, and false if it does. The reason is the same in each
// run.
func EbpfGoUnread(ctx context.Context, name string, data []byte) (Finding, bool) {
	o, err := Parse(ctx, name, data)
	if err != nil {
		return Finding{Status: Fails, Code: ObjectUnread, Subject: name, Loader: EbpfGo}, true
	}
	return o.unread, o.unread.Subject != ""
}

// ebpfGoHint names something that cilium/ebpf refuses to read: references to weak maps and settings
// (relocateInstruction in its elf_reader.go), or typed variables of the kernel (loadKsymsSection).
func (o *Object) ebpfGoHint() Finding {
	type ref struct {
		kind bpfobj.RefKind
		n    int
	}
	refers := make(map[ref]bool)
	for i := range o.Funcs {
		for j := range o.Funcs[i].Insns {
			in := &o.Funcs[i].Insns[j]
			if kind := in.Ref.Kind(); kind == bpfobj.RefMap || kind == bpfobj.RefExtern {
				refers[ref{kind, in.Ref.N()}] = true
			}
		}
	}
	for i, m := range o.Maps {
		if m.Weak && refers[ref{bpfobj.RefMap, i}] {
			return Finding{Code: ObjectWeakMap, Args: Args{Name: m.Name}}
		}
	}
	for i, x := range o.Externs {
		switch {
		case x.Kind == bpfobj.ExternKsym && x.Type != 0 && o.isVar(x.Type):
			return Finding{Code: ObjectTypedVar, Args: Args{Name: x.Name}}
		case x.Kind == bpfobj.ExternKconfig && x.Weak && refers[ref{bpfobj.RefExtern, i}]:
			return Finding{Code: ObjectWeakVar, Args: Args{Name: x.Name}}
		}
	}
	return Finding{Code: ObjectUnread}
}

func (o *Object) isVar(id btf.TypeID) bool {
	t := o.BTF.Type(id)
	return t.Kind() == btf.KindVar
}
