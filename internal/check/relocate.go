// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/core"
)

// dryRun relocates objects against kernels. After add it is immutable and safe for concurrent use, and so are the decisions in adds.
type dryRun struct {
	sets *core.Sets
	at   map[*core.Object]int // index of each object
	adds [][]rule.Decisions   // decisions by added types, per file of types and object
	aya  bool                 // decide as aya does
}

func newDryRun(objects []*rule.Object, aya bool) dryRun {
	d := dryRun{at: make(map[*core.Object]int), aya: aya}
	var all []*core.Object
	for i, o := range objects {
		d.at[o.Relocations()] = i
		all = append(all, o.Relocations())
	}
	d.sets = core.NewSets(all)
	return d
}

// target is a kernel to relocate against. Its memory is reused from kernel to
// kernel. It is for one goroutine at a time.
type target struct {
	core.Target
	fill   core.Filler
	table  core.Table
	cilium core.CiliumDecider // decides by table

	bare  *target   // the same kernel without modules, nil before it is needed
	apart []*target // the same kernel with one of the modules that define a type differently

	number map[*core.Object]int // index in the table's set
}

// linked returns a function that decides programs of an object as cilium/ebpf does, nil if the object is not for the kernel.
func (t *target) linked(o *core.Object) func(section, name string) (*core.LinkedDecision, error) {
	i, ok := t.number[o]
	if !ok {
		return nil
	}
	return func(section, name string) (*core.LinkedDecision, error) { return t.cilium.Linked(i, section, name) }
}

// on relocates each object. What it returns is valid until the next call.
func (d dryRun) on(ctx context.Context, t *target) ([]rule.Decisions, error) {
	out := make([]rule.Decisions, len(d.at))
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
		list := make(rule.Decisions, 0, len(o.Records()))
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
	Name string // name in messages
	BTF  []byte // BTF in the byte order of the objects that it is for
}

// add has the records whose roots a kernel does not have decided by other types.
func (d *dryRun) add(ctx context.Context, l []Types) error {
	for _, types := range l {
		t := new(target) // the decisions keep using t
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
