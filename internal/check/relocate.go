// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/pkg/relo"
)

// records are the CO-RE records of an object.
type records struct {
	*core.Object
}

// types returns the object's types, nil if it has none.
func (r records) types() *btf.BTF { return r.Object.BTF() }

// text is a record in words: "byte_off struct task_struct.mm.pgd".
func (r records) text(i int) string { return r.Object.Relocation(&r.Object.Records()[i]) }

// finding returns a finding about a record.
func (r records) finding(i int, s Status, reason relo.Reason) Finding {
	f := Finding{Status: s, Code: reason.Code, Source: r.source(i)}
	f.Local, f.Target = reason.Local, reason.Target
	f.Cause, f.Name, f.LocalNumber, f.TargetNumber = reason.Cause, reason.Name, reason.LocalNumber, reason.TargetNumber
	f.Relocation, f.Subject = r.Object.Local(&r.Object.Records()[i])
	return f
}

// root is the essential name of the struct that a record is about, "" if it is about something else.
func (r records) root(i int) string {
	t := r.Object.Root(&r.Object.Records()[i])
	if t.Kind() != btf.KindStruct {
		return ""
	}
	return string(btf.Essential(t.Name()))
}

// notes returns findings about a record that do not depend on the kernel.
func (r records) notes(i int) (l []Finding) {
	if r.asksForID(i) {
		l = append(l, r.finding(i, OK, relo.Reason{Code: RunningKernelTypeID}))
	}
	return l
}

// source is the file:line of a record, "" where it is not known.
func (r records) source(i int) string { return r.Object.Source(&r.Object.Records()[i]) }

// asksForID reports whether the value of a record is the ID of a kernel's type.
func (r records) asksForID(i int) bool {
	return r.Object.Records()[i].Kind == relo.TargetTypeID
}

// dryRun relocates objects against kernels. It is immutable.
type dryRun struct {
	sets *core.Sets
	at   map[*core.Object]int // place in the objects
	adds [][]decisions        // by file of types that the loader adds, by object
	aya  bool                 // decide as aya does
}

func newDryRun(objects []*Object, aya bool) dryRun {
	d := dryRun{at: make(map[*core.Object]int), aya: aya}
	var all []*core.Object
	for i, o := range objects {
		d.at[o.records.Object] = i
		all = append(all, o.records.Object)
	}
	d.sets = core.NewSets(all)
	return d
}

// target is a kernel to relocate against. Its memory is reused from kernel to
// kernel.
type target struct {
	core.Target
	fill   core.Filler
	table  core.Table
	cilium core.CiliumDecider // of the table

	bare  *target   // the same kernel without modules, nil before it is needed
	apart []*target // the same kernel with one of the modules that define a type differently

	number map[*core.Object]int // in the set of the table
}

// unit returns a function that decides programs of an object as cilium/ebpf does, nil if the object is not for the kernel.
func (t *target) unit(o *core.Object) func(section, name string) (*core.UnitDecision, error) {
	i, ok := t.number[o]
	if !ok {
		return nil
	}
	return func(section, name string) (*core.UnitDecision, error) { return t.cilium.Unit(i, section, name) }
}

// types calls f for the types of vmlinux, whose module is "", and then for those
// of each module.
func (t *target) types(f func(module string, b *btf.BTF)) {
	for module, b := range t.Target.Views() {
		f(module, b)
	}
}

// on relocates each object. What it returns is valid until the next call.
func (d dryRun) on(ctx context.Context, t *target) ([]decisions, error) {
	out := make([]decisions, len(d.at))
	t.number = nil
	s := d.sets.For(&t.Target)
	if s == nil {
		return out, nil
	}
	if err := t.fill.Fill(ctx, &t.table, s, &t.Target, nil); err != nil {
		return nil, err
	}
	t.cilium.Reset(ctx, &t.table)
	libbpf, aya := t.table.Libbpf(), t.table.Aya()
	t.number = make(map[*core.Object]int)
	for i, o := range s.Objects() {
		t.number[o] = i
		list := make(decisions, 0, len(o.Records()))
		all := libbpf.Decisions(i)
		if d.aya {
			all = aya.Decisions(i)
		}
		for _, dec := range all {
			list = append(list, dec)
		}
		for _, added := range d.adds {
			for j, x := range added[d.at[o]] {
				list[j] = list[j].OrAdded(x)
			}
		}
		out[d.at[o]] = list
	}
	return out, nil
}

// Types are types that the loader adds to those of each kernel.
type Types struct {
	Name string // for messages
	BTF  []byte // of the byte order of the objects that they are for
}

// add has the records whose roots a kernel does not have decided by other types.
func (d *dryRun) add(ctx context.Context, l []Types) error {
	for _, types := range l {
		t := new(target) // which the decisions need
		if err := t.Load(ctx, types.Name, types.BTF); err != nil {
			return err
		}
		added, err := dryRun{sets: d.sets, at: d.at}.on(ctx, t)
		if err != nil {
			return fmt.Errorf("%s: %w", types.Name, err)
		}
		d.adds = append(d.adds, added)
	}
	return nil
}

// decisions are libbpf's, or aya's, on each record of one object on one kernel, nil if the object
// is not for the kernel.
type decisions []*core.Decision

// forKernel reports whether the object is for the kernel.
func (d decisions) forKernel() bool { return d != nil }

// value is what the loader writes for a record; false where it writes nothing,
// or an invalid instruction.
func (d decisions) value(i int) (uint64, bool) { return d[i].New, d[i].Result.OK() }

// outcome says whether the loader makes the instruction of a record invalid, or
// refuses the object, and why.
func (d decisions) outcome(i int) (poisoned, refused bool, reason relo.Reason) {
	switch d[i].Result {
	case relo.Poisoned:
		return true, false, d[i].Reason()
	case relo.Ambiguous: // whichever values they have
		return false, true, relo.Reason{Code: d[i].Reason().Code}
	case relo.Error:
		return false, true, d[i].Reason()
	}
	return false, false, relo.Reason{}
}
