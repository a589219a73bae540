// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"slices"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
)

// bare relocates each object on a kernel none of whose modules is loaded. It is nil where that makes no difference, since
// loaders search the BTF of all modules that are loaded: both libbpf (bpf_core_find_cands) and cilium/ebpf (applyRelocations in
// linker.go). What it returns is valid until the next call.
func (d dryRun) bare(ctx context.Context, t *target, it *corpus.Kernel, loaded []rule.Decisions) ([]rule.Decisions, error) {
	if !slices.ContainsFunc(loaded, rule.Decisions.NeedAny) {
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
func (d dryRun) apart(ctx context.Context, t *target, it *corpus.Kernel, together []rule.Decisions) (best []rule.Decisions, on []*target, err error) {
	var names []string
	for _, l := range together {
		for i := range l {
			names = append(names, l[i].Disagreeing()...)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	best, on = make([]rule.Decisions, len(together)), make([]*target, len(together))
	most := make([]int, len(together))
	for n, keep := range names[:min(len(names), triedApart)] {
		if n == len(t.apart) {
			t.apart = append(t.apart, new(target))
		}
		one := *it
		one.Modules = slices.DeleteFunc(slices.Clone(it.Modules), func(m corpus.Module) bool { return m.Name != keep && slices.Contains(names, m.Name) })
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

// triedApart is how many of the modules that define a type differently are tried without the others.
const triedApart = 3

// withoutModules judges program j of an object once more where no module is loaded: p is the object there, own and code are
// the findings on it and on its code where all are. What fails in one of the two and not in the other may fail, and what would be
// fine if a module was loaded needs it.
func (r *run) withoutModules(ctx context.Context, p *objectCode, j int, own, code list) (ownHere, codeHere list) {
	pr := &p.o.Programs[j]
	names := p.scenes.ModulesOf(pr.Records)
	if len(names) == 0 {
		return own, code
	}
	bare := &programCode{objectCode: p, e: p.scenes.EvaluateCode(j), pr: pr} // of what that refuses, own has what is refused where modules are loaded
	loaded, unloaded := r.found.read(code), r.found.read(r.code(ctx, bare))
	changed := slices.Clone(loaded)
	for i := range changed {
		if f := &changed[i]; f.Status == rule.Fails && !failsFor(f.Loader, unloaded) {
			f.Status, f.Names, f.When = rule.MayFail, rule.NamesOf(names), rule.Loaded
		}
	}
	var more []rule.Finding
	for _, f := range unloaded {
		switch {
		case f.Status == rule.Fails && !failsFor(f.Loader, loaded):
			f.Status, f.Names, f.When = rule.MayFail, rule.NamesOf(names), rule.NotLoaded
		case f.Status == rule.Guarded || f.Code != rule.ModuleNeeded:
			continue
		}
		more = append(more, f)
	}
	return r.found.note(append(r.found.read(own), more...)), r.found.note(changed)
}

// failsFor reports whether one of the findings fails with a loader, or with every one, where no module is loaded if it needs one.
func failsFor(l rule.Loader, findings []rule.Finding) bool {
	return slices.ContainsFunc(findings, func(f rule.Finding) bool {
		needs := f.Code == rule.ModuleNeeded && f.Reach == rule.Reached && f.When == rule.Always && f.Stops == rule.NothingStops
		return f.Concerns(l) && (f.Status == rule.Fails || f.Status == rule.MayFail && needs)
	})
}
