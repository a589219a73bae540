// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"context"
	"slices"

	"github.com/btfgen/btfgen/internal/check/rule"
)

// Setup is some objects, and what is known of how they are loaded.
type Setup struct {
	Objects []*rule.Object
	Loaders []rule.Loader // the worst verdict counts
	Policy  Policy
}

// Judge adds the verdicts on objects to a report that has those on their programs, in order. needs returns what
// an object needs on a kernel, whichever of its programs are loaded. An error is ctx's.
func (s *Setup) Judge(ctx context.Context, rep *Report, needs func(kernel, object int) []rule.Finding) error {
	v := &judge{Setup: s, axis: rep.axis(), needs: needs}
	var all []*evidence
	first := 0
	for i, o := range s.Objects {
		v.first = append(v.first, first)
		row, e := v.objectRow(i, &s.Policy)
		rep.Objects, all = append(rep.Objects, row), append(all, e)
		first += len(o.Programs)
	}
	for i := range rep.Objects {
		rep.Objects[i].Headline = v.headline(&rep.Objects[i])
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
	for _, rows := range [][]ObjectRow{rep.Objects, rep.Variants, rep.Executables} {
		for i := range rows {
			rows[i].Headline = v.headline(&rows[i])
		}
	}
	return nil
}

// judge judges the objects of a report.
type judge struct {
	*Setup
	*axis
	needs func(kernel, object int) []rule.Finding
	first []int // programs in the report, by object
}

// refused returns Unopened, or the reasons why libbpf has no type for a program that it would load, unless the policy says that the
// object works without it (bpf_object_load_prog).
func (s *Setup) refused(o *rule.Object, l rule.Loader) []rule.Finding {
	all := o.Unopened(l)
	if len(all) > 0 || l != rule.Libbpf {
		return all
	}
	for i := range o.Programs {
		pr := &o.Programs[i]
		if f := rule.Untyped(pr); f.Status != rule.OK && pr.AutoLoad && !s.Policy.spares(o, i) {
			all = append(all, f)
		}
	}
	return all
}

// LoadersOf returns the loaders that count for an object: those that load it, whatever the kernel, or all if none does.
func (s *Setup) LoadersOf(o *rule.Object) []rule.Loader {
	open := slices.DeleteFunc(slices.Clone(s.Loaders), func(l rule.Loader) bool { return len(s.refused(o, l)) > 0 })
	if len(open) == 0 {
		return s.Loaders
	}
	return open
}
