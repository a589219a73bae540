// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/corpus"
)

// needsModule is what reasons begin with that name a module.
const needsModule = "needs module "

// needsOneOf is the reason where something is in one of these modules.
func needsOneOf(modules ...string) string {
	return needsModule + strings.Join(modules, " or ") + " to be loaded"
}

// Modules returns the names of modules that programs need to be loaded, in order; where one of several is enough, that is the first.
func (r *Report) Modules() []string {
	names := make(map[string]bool)
	for i := range r.Programs {
		for _, f := range r.Programs[i].Findings {
			if name, ok := strings.CutPrefix(f.Reason, needsModule); ok {
				name, _, _ = strings.Cut(name, " ")
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

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

// needs says what has to be there for what a record resolves to, "" for nothing.
func (d decisions) needs(i int) string {
	if !d[i].Result.OK() {
		return ""
	}
	if names := d[i].Modules(); len(names) > 0 {
		return needsOneOf(names[:min(len(names), someModules)]...)
	}
	return ""
}

// someModules is how many modules are named of those that have a type.
const someModules = 3

// needAny reports whether any record resolves to what only modules have.
func (d decisions) needAny() bool {
	for i := range d {
		if d.needs(i) != "" {
			return true
		}
	}
	return false
}

// withoutModules finds what the verifier reaches of program j of an object where no module is loaded, and what would be fine if one
// was. p is the object there.
func (r *run) withoutModules(ctx context.Context, p *pairing, j int) []int32 {
	e := evaluation{pairing: p, pr: &p.o.Programs[j]}
	if !slices.ContainsFunc(e.pr.Records, func(i int) bool { return p.needs(i) != "" }) {
		return nil
	}
	found := r.found.read(nil, r.code(ctx, &e))
	return r.found.note(slices.DeleteFunc(found, func(f Finding) bool {
		return f.Status == Guarded || !strings.HasPrefix(f.Reason, needsModule)
	}))
}
