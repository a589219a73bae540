// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"slices"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
)

// bare relocates each object on a kernel none of whose modules is loaded. It is nil if that makes no difference: loaders search
// the BTF of all loaded modules, both libbpf (bpf_core_find_cands) and cilium/ebpf (applyRelocations in linker.go). What it
// returns is valid until the next call.
func (d dryRun) bare(
	ctx context.Context, t *target, it *corpus.Kernel, loaded []rule.Decisions,
) ([]rule.Decisions, error) {
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
func (d dryRun) apart(
	ctx context.Context, t *target, it *corpus.Kernel, together []rule.Decisions,
) (best []rule.Decisions, on []*target, err error) {
	names := disagreeing(together)
	best, on = make([]rule.Decisions, len(together)), make([]*target, len(together))
	most := make([]int, len(together))
	for n, keep := range names[:min(len(names), triedApart)] {
		one, err := t.loadApart(ctx, n, it, func(module string) bool {
			return module == keep || !slices.Contains(names, module)
		})
		if err != nil {
			return nil, nil, err
		}
		now, err := d.on(ctx, one)
		if err != nil {
			return nil, nil, err
		}
		for i, l := range together {
			if !slices.ContainsFunc(l, func(x *core.Decision) bool { return x.Disagreeing() != nil }) {
				continue
			}
			if resolved := countResolved(now[i]); best[i] == nil || resolved > most[i] {
				best[i], on[i], most[i] = now[i], one, resolved
			}
		}
	}
	return best, on, nil
}

// disagreeing returns the sorted names of the modules that define a type of an object differently.
func disagreeing(objects []rule.Decisions) (names []string) {
	for _, l := range objects {
		for i := range l {
			names = append(names, l[i].Disagreeing()...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// loadApart loads the kernel into t.apart[n] with the modules that loaded chooses.
func (t *target) loadApart(
	ctx context.Context, n int, it *corpus.Kernel, loaded func(module string) bool,
) (*target, error) {
	if n == len(t.apart) {
		t.apart = append(t.apart, new(target))
	}
	some := *it
	some.Modules = slices.DeleteFunc(slices.Clone(it.Modules), func(m corpus.Module) bool { return !loaded(m.Name) })
	return t.apart[n], some.Load(ctx, &t.apart[n].Target, it.Path)
}

// countResolved returns how many relocations resolve.
func countResolved(l rule.Decisions) (n int) {
	for i := range l {
		if l[i].Result.OK() {
			n++
		}
	}
	return n
}

// triedApart is how many of the modules that define a type differently are tried without the others.
const triedApart = 3

// withoutModules judges program j of an object once more where no module is loaded: p is the object there, own and code are
// the findings on it and on its code where all are.
func (r *run) withoutModules(ctx context.Context, p *objectCode, j int, own, code list) (ownHere, codeHere list) {
	names := p.scenes.ModulesOf(p.object.Programs[j].Records)
	if len(names) == 0 {
		return own, code
	}
	bare := r.program(p, j)
	both := make(map[rule.Finding]bool) // findings not on the program's code, with the modules
	for _, f := range r.found.read(own) {
		both[f] = true
	}
	unloaded := slices.DeleteFunc(r.found.read(bare.own), func(f rule.Finding) bool { return both[f] })
	unloaded = append(unloaded, r.found.read(r.code(ctx, bare))...)
	merged, more := p.scenes.MergeStates(rule.NamesOf(names), r.found.read(code), unloaded)
	return r.found.note(append(r.found.read(own), more...)), r.found.note(merged)
}
