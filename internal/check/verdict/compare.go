// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/output/jsonfile"
)

// Change is a program or object whose verdict on a kernel differs from an older report's.
type Change struct {
	Object  string      `json:"object"`
	Program string      `json:"program"` // for an object, the first that decides its new verdict; "" if it works
	Kernel  string      `json:"kernel"`
	Old     rule.Status `json:"old"`
	New     rule.Status `json:"new"`

	Added        bool `json:"added"`         // the older report lacks the object
	ProgramAdded bool `json:"program_added"` // the older report lacks the program
}

// Lost reports whether the older report has a verdict and the new one has none, since the object is for other machines now, or is not
// loaded.
func (c *Change) Lost() bool { return !c.New.Judged() && c.Old.Judged() }

// Worse reports whether it is a change for the worse: a worse verdict, or a lost one. A change from ok to guarded is
// not, and neither is a new object, program or kernel.
func (c *Change) Worse() bool { return !c.Added && (c.Lost() || c.New > c.Old && c.New > rule.Other) }

// Better reports whether it is a change for the better.
func (c *Change) Better() bool { return !c.Added && !c.Lost() && c.New < c.Old }

// Lost is a kernel, object or program that an older report has verdicts on and a newer one does not have. The other fields are empty.
type Lost struct {
	Kernel  string
	Object  string
	Program string // program of Object
}

// Baseline is what an older report says of objects, programs and kernels.
type Baseline struct {
	rows    map[rowName][]rule.Status // verdicts on programs and on objects, which have only a name
	columns map[string]int            // index of each kernel in rows
	kernels []string
}

// rowName is what a program is known by.
type rowName struct{ object, program, section string }

func (w rowName) compare(o rowName) int {
	return cmp.Or(cmp.Compare(w.object, o.object), cmp.Compare(w.program, o.program), cmp.Compare(w.section, o.section))
}

func rowOf(p *ProgramRow) rowName { return rowName{p.Object, p.Name, p.Section} }

// has reports whether the report has a program.
func (b *Baseline) has(p *ProgramRow) bool {
	_, ok := b.rows[rowOf(p)]
	return ok
}

// ReadBaseline reads a report that was written as JSON. Errors name path.
func ReadBaseline(ctx context.Context, path string) (*Baseline, error) {
	type program struct {
		Object, Program, Section string
		Status                   []rule.Status
	}
	var r struct {
		Version           int
		Kernels           []struct{ Name string }
		Objects, Programs []program
	}
	const what = "a report of check --json"
	if err := jsonfile.Read(ctx, path, limits.ReportBytes, what, &r); err != nil {
		return nil, err
	}
	if r.Version != ReportVersion {
		return nil, fmt.Errorf("%s: not %s: version %d, want %d", path, what, r.Version, ReportVersion)
	}
	b := &Baseline{rows: make(map[rowName][]rule.Status), columns: make(map[string]int)}
	unnamed := false
	for i, k := range r.Kernels {
		b.columns[k.Name], unnamed = i, unnamed || k.Name == ""
		b.kernels = append(b.kernels, k.Name)
	}
	for _, p := range slices.Concat(r.Objects, r.Programs) {
		unnamed = unnamed || p.Object == ""
		if len(p.Status) != len(r.Kernels) {
			return nil, fmt.Errorf("%s: not %s: %s: %d verdicts on %d kernels",
				path, what, cmp.Or(p.Program, p.Object), len(p.Status), len(r.Kernels))
		}
		b.rows[rowName{p.Object, p.Program, p.Section}] = p.Status
	}
	if unnamed {
		return nil, fmt.Errorf("%s: not %s: a kernel or an object has no name", path, what)
	}
	return b, nil
}

// Compare returns which programs changed since an older report, in the order of r.
// Programs and kernels that the old one does not have count as ok there, so
// that new failures are found; such programs are Added. Lost returns those that r does not have.
func (r *Report) Compare(old *Baseline) (out []Change) {
	variant := make(map[string]bool) // names of objects that are variants
	for i := range r.Objects {
		variant[r.Objects[i].Object] = r.isVariant(i)
	}
	for i := range r.Programs {
		p := &r.Programs[i]
		added := !old.has(p)
		old.each(r, old.rows[rowOf(p)], p.Status, func(k int, before rule.Status) {
			if variant[p.Object] && (before == rule.Unloaded || p.Status[k] == rule.Unloaded) {
				return // another variant is loaded
			}
			out = append(out, Change{p.Object, p.Name, r.Kernels[k].Name, before, p.Status[k], added, added})
		})
	}
	return out
}

// CompareObjects is Compare for whole objects and for variants, on the kernels that sel chooses. The older report's verdict on variants is
// the best on one of them, whether it has them as such or not.
func (r *Report) CompareObjects(old *Baseline, sel func(kernel int) bool) (out []Change) {
	for _, o := range r.objectsOrVariants() {
		was := old.statusOf(r, o)
		old.each(r, was, o.Status, func(k int, before rule.Status) {
			if !sel(k) {
				return
			}
			c := Change{Object: o.Object, Kernel: r.Kernels[k].Name, Old: before, New: o.Status[k], Added: was == nil}
			if d := slices.IndexFunc(o.Decides, func(d Decider) bool {
				return r.Programs[d.Program].Status[k] == o.Status[k] && slices.Contains(d.Kernels, k)
			}); d >= 0 {
				p := &r.Programs[o.Decides[d].Program]
				c.Program, c.ProgramAdded = p.Name, !old.has(p)
			}
			out = append(out, c)
		})
	}
	return out
}

// statusOf returns the verdicts on an object or on variants, nil if the older report has none.
func (b *Baseline) statusOf(r *Report, o *ObjectRow) (status []rule.Status) {
	if o.Variants == nil {
		return b.rows[rowName{object: o.Object}]
	}
	for _, a := range o.Variants {
		var together []rule.Status // verdicts on the objects of an alternative together
		for _, i := range a {
			l := b.rows[rowName{object: r.Objects[i].Object}]
			if together == nil {
				together = slices.Clone(l)
				continue
			}
			for k := range l {
				together[k] = both(together[k], l[k])
			}
		}
		if status == nil {
			status = together
			continue
		}
		for k, s := range together {
			if s.Judged() && (s < status[k] || !status[k].Judged()) {
				status[k] = s
			}
		}
	}
	return status
}

// each calls changed for each kernel on which the verdict on something was another, or is not known and not ok.
func (b *Baseline) each(r *Report, was, now []rule.Status, changed func(k int, before rule.Status)) {
	for k, s := range now {
		before := rule.OK
		col, known := b.columns[r.Kernels[k].Name]
		if known = known && was != nil; known {
			before = was[col]
		}
		lost := known && !s.Judged() && before.Judged()
		if lost || s.Judged() && s != before && max(s, before) > rule.Other {
			changed(k, before)
		}
	}
}

// Lost returns what the older report has verdicts on and r does not have: kernels that sel chooses by name, in the older report's order,
// then objects and programs with verdicts on such kernels, by name.
func (r *Report) Lost(old *Baseline, sel func(kernel string) bool) (out []Lost) {
	has := make(map[rowName]bool)
	for i := range r.Objects {
		has[rowName{object: r.Objects[i].Object}] = true
	}
	for i := range r.Programs {
		has[rowOf(&r.Programs[i])] = true
	}
	var columns []int
	for i, name := range old.kernels {
		if !sel(name) {
			continue
		}
		columns = append(columns, i)
		if !slices.ContainsFunc(r.Kernels, func(k Column) bool { return k.Name == name }) {
			out = append(out, Lost{Kernel: name})
		}
	}
	for _, w := range slices.SortedFunc(maps.Keys(old.rows), rowName.compare) {
		judged := slices.ContainsFunc(columns, func(i int) bool { return old.rows[w][i].Judged() })
		if judged && !has[w] && (w.program == "" || has[rowName{object: w.object}]) {
			out = append(out, Lost{Object: w.object, Program: w.program})
		}
	}
	return out
}
