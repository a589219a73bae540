// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"slices"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/pkg/relo"
)

// bare relocates each object on a kernel none of whose modules is loaded. It is nil where that makes no difference, since
// loaders search the BTF of all modules that are loaded: both libbpf (bpf_core_find_cands) and cilium/ebpf (applyRelocations in
// linker.go). What it returns is valid until the next call.
func (d dryRun) bare(ctx context.Context, t *target, it *corpus.Kernel, loaded []decisions) ([]decisions, error) {
	if !slices.ContainsFunc(loaded, decisions.needAny) {
		return nil, nil
	}
	if t.bare == nil {
		t.bare = new(target)
	}
	vmlinux := *it
	vmlinux.Modules = nil
	if err := vmlinux.Load(ctx, &t.bare.Target, it.Path); err != nil {
		return nil, err
	}
	return d.on(ctx, t.bare)
}

// apart returns the objects on a kernel without modules that define a type of theirs differently, except one of these: the one with which most
// records resolve. It returns nil for objects without such a type. A host seldom loads all modules.
func (d dryRun) apart(ctx context.Context, t *target, it *corpus.Kernel, together []decisions) (best []decisions, on []*target, err error) {
	var names []string
	for _, l := range together {
		for i := range l {
			names = append(names, l[i].Disagreeing()...)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	best, on = make([]decisions, len(together)), make([]*target, len(together))
	most := make([]int, len(together))
	for n, keep := range names[:min(len(names), someModules)] {
		if n == len(t.apart) {
			t.apart = append(t.apart, new(target))
		}
		one := *it
		one.Modules = slices.DeleteFunc(slices.Clone(it.Modules), func(m relo.Module) bool { return m.Name != keep && slices.Contains(names, m.Name) })
		if err := one.Load(ctx, &t.apart[n].Target, it.Path); err != nil {
			return nil, nil, err
		}
		now, err := d.on(ctx, t.apart[n])
		if err != nil {
			return nil, nil, err
		}
		for i, l := range together {
			if !slices.ContainsFunc(l, func(x *core.Decision) bool { return x.Disagreeing() != nil }) {
				continue
			}
			resolved := 0
			for j := range now[i] {
				if now[i][j].Result.OK() {
					resolved++
				}
			}
			if best[i] == nil || resolved > most[i] {
				best[i], on[i], most[i] = now[i], t.apart[n], resolved
			}
		}
	}
	return best, on, nil
}

// enough are modules, each enough by itself for a record to resolve, none if it does not need one.
func (p *pairing) enough(record int) []string {
	names := p.withModules.modules(record)
	if p.together != nil && len(names) > 0 {
		if all := p.together[record].Disagreeing(); all != nil {
			names = all
		}
	}
	return names[:min(len(names), someModules)]
}

// disagreements adds a finding for each record of a program that is ambiguous where all modules are loaded.
func (e *evaluation) disagreements() {
	if e.together == nil {
		return
	}
	for _, r := range e.pr.Records {
		if names := e.together[r].Disagreeing(); names != nil {
			_, _, reason := e.together.outcome(r)
			f := e.o.records.finding(r, MayFail, reason)
			f.Names, f.When, f.Stops = namesOf(names[:min(len(names), someModules)]), Together, ObjectStops
			e.add(f)
		}
	}
}

// modules are some of those that have what a record resolves to, for libbpf or only for cilium/ebpf. There are none if it is in vmlinux or
// does not resolve.
func (d decisions) modules(i int) []string {
	names := d[i].HiddenIn()
	if d[i].Result.OK() {
		names = d[i].Modules()
	}
	return names[:min(len(names), someModules)]
}

// someModules is how many modules are named of those that have a type.
const someModules = 3

// needAny reports whether any record resolves to what only modules have.
func (d decisions) needAny() bool {
	for i := range d {
		if len(d.modules(i)) > 0 {
			return true
		}
	}
	return false
}

// withoutModules judges program j of an object once more where no module is loaded: p is the object there, own and code are
// the findings on it and on its code where all are. What fails in one of the two and not in the other may fail, and what would be
// fine if a module was loaded needs it.
func (r *run) withoutModules(ctx context.Context, p *pairing, j int, own, code list) (ownHere, codeHere list) {
	e := evaluation{pairing: p, pr: &p.o.Programs[j]}
	names := p.modulesOf(e.pr.Records)
	if len(names) == 0 {
		return own, code
	}
	e.ebpfGoUnit() // of what it refuses, own has what is refused where modules are loaded
	loaded, bare := r.found.read(code), r.found.read(r.code(ctx, &e))
	changed := slices.Clone(loaded)
	for i := range changed {
		if f := &changed[i]; f.Status == Fails && !failsFor(f.Loader, bare) {
			f.Status, f.Names, f.When = MayFail, namesOf(names), Loaded
		}
	}
	var more []Finding
	for _, f := range bare {
		switch {
		case f.Status == Fails && !failsFor(f.Loader, loaded):
			f.Status, f.Names, f.When = MayFail, namesOf(names), NotLoaded
		case f.Status == Guarded || f.Code != ModuleNeeded:
			continue
		}
		more = append(more, f)
	}
	return r.found.note(append(r.found.read(own), more...)), r.found.note(changed)
}

// failsFor reports whether one of the findings fails with a loader, or with every one, where no module is loaded if it needs one.
func failsFor(l Loader, findings []Finding) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool {
		needs := f.Code == ModuleNeeded && f.Reach == Reached && f.When == Always && f.Stops == NothingStops
		return f.concerns(l) && (f.Status == Fails || f.Status == MayFail && needs)
	})
}

// modulesOf are some of the modules that have what records resolve to, in order.
func (p *pairing) modulesOf(records []int) []string {
	var names []string
	for _, i := range records {
		if p.withModules != nil {
			names = append(names, p.enough(i)...)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return names[:min(len(names), someModules)]
}
