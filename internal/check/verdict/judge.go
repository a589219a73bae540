// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"cmp"
	"context"
	"slices"

	"github.com/btfgen/btfgen/internal/check/rule"
)

// Setup is some objects, and what is known of how they are loaded.
type Setup struct {
	Objects []*rule.Object
	Loaders []rule.Loader // loaders to judge for
	Prefer  []rule.Loader // loader whose verdict counts, per object; "", or a nil slice, for the worst of Loaders
	Policy  Policy
}

// Judge adds the verdicts on objects to a report with the verdicts on their programs, in order. needs returns the needs of
// an object on a kernel that do not depend on the programs that are loaded. An error is ctx's.
func (s *Setup) Judge(ctx context.Context, rep *Report, needs func(kernel, object int) []rule.Finding) error {
	v := &judge{Setup: s, Report: rep, needs: needs, loader: make([]rule.Loader, len(s.Objects))}
	var all []*evidence
	first := 0
	for i, o := range s.Objects {
		v.first = append(v.first, first)
		if s.Prefer != nil {
			v.loader[i] = s.Prefer[i]
		}
		row, e := v.opened(i)
		rep.Objects, all = append(rep.Objects, row), append(all, e)
		first += len(o.Programs)
	}
	for i := range rep.Objects {
		rep.Objects[i].Suggestion = v.suggest(i, all[i])
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	rep.Proposals = v.propose()
	for _, group := range s.Policy.variantsOf(s.Objects) {
		rep.Variants = append(rep.Variants, rep.variants(group))
	}
	for i := range rep.Objects {
		rep.leaveOutPrograms(&rep.Objects[i], all[i].plan)
	}
	rep.Executables = rep.executables()
	rep.Summarize()
	return nil
}

// opened returns the row of object i. A loader that refuses the object whatever the kernel does not count where another one does not.
func (v *judge) opened(i int) (ObjectRow, *evidence) {
	row, e := v.withLoader(i, v.loader[i])
	if len(v.Setup.Loaders) == 1 || !v.refusedBy(i, row.Loader, row.Status) {
		return row, e
	}
	for _, l := range row.Loaders {
		if l.Loader != row.Loader && !v.refusedBy(i, l.Loader, l.Status) {
			return v.withLoader(i, l.Loader)
		}
	}
	return row, e
}

// refusedBy reports whether a loader, or one of them if it is "", loads object i on no kernel, with the verdicts given, for something about
// the object that only this loader refuses.
func (v *judge) refusedBy(i int, l rule.Loader, status []rule.Status) bool {
	refuses := func(f *rule.Finding) bool {
		return f.OfFile() && f.Status == rule.Fails && f.Loader != "" && (l == "" || f.Loader == l)
	}
	all := len(status) > 0
	for k, s := range status {
		if !s.Judged() {
			continue
		}
		if s != rule.Fails {
			return false
		}
		all = all && slices.ContainsFunc(v.needs(k, i), func(f rule.Finding) bool { return refuses(&f) })
	}
	if all {
		return true
	}
	for j := range v.Setup.Objects[i].Programs {
		for f := range v.Programs[v.first[i]+j].Findings {
			if x := &v.Programs[v.first[i]+j].Findings[f]; refuses(&x.Finding) {
				return true
			}
		}
	}
	return len(v.refused(v.Setup.Objects[i], cmp.Or(l, rule.Libbpf))) > 0
}

// withLoader returns the row of object i where the verdict of a loader counts, or the worst one if it is "", and makes that of its programs.
func (v *judge) withLoader(i int, l rule.Loader) (ObjectRow, *evidence) {
	v.loader[i] = l
	for j := range v.Setup.Objects[i].Programs {
		p := &v.Programs[v.first[i]+j]
		if slices.ContainsFunc(p.Findings, func(f KernelFinding) bool { return f.Loader != "" }) {
			p.sumWith(l, len(v.Kernels))
		}
	}
	return v.objectRow(i, &v.Policy)
}

// judge judges the objects of a report.
type judge struct {
	*Setup
	*Report
	needs  func(kernel, object int) []rule.Finding
	first  []int         // index of each object's first program in the report
	loader []rule.Loader // loader whose verdict counts, per object
}

// refused returns Unopened, or the reasons why a loader has no type for a program that it would load, unless the policy says that the
// object works without it (bpf_object_load_prog in libbpf).
func (s *Setup) refused(o *rule.Object, l rule.Loader) []rule.Finding {
	all := o.Unopened(l)
	if len(all) > 0 {
		return all
	}
	for i := range o.Programs {
		pr := &o.Programs[i]
		if f := rule.Untyped(pr, l); f.Status != rule.OK && pr.AutoLoad && !s.Policy.spares(o, i) {
			all = append(all, f)
		}
	}
	return all
}

// LoadersOf returns the loaders that count for an object: the ones that can open it, or all if none can.
func (s *Setup) LoadersOf(o *rule.Object) []rule.Loader {
	open := slices.DeleteFunc(slices.Clone(s.Loaders), func(l rule.Loader) bool { return len(s.refused(o, l)) > 0 })
	if len(open) == 0 {
		return s.Loaders
	}
	return open
}
