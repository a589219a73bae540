// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/output/jsonfile"
)

// Change is a program or object whose verdict on a kernel differs from an older report's.
type Change struct {
	Object  string `json:"object"`
	Program string `json:"program"` // of an object the first that decides its new verdict, "" if it works
	Kernel  string `json:"kernel"`
	Old     Status `json:"old"`
	New     Status `json:"new"`

	Added        bool `json:"added"`         // the older report does not have it
	ProgramAdded bool `json:"program_added"` // the older report does not have the program
}

// Worse reports whether it is a change for the worse. A change from ok to guarded is
// not, and neither is a new object, program or kernel.
func (c *Change) Worse() bool { return c.New > c.Old && c.New > Other && !c.Added }

// Baseline is what an older report says of objects, programs and kernels.
type Baseline struct {
	rows    map[row][]Status // of programs; that of an object has its name alone
	columns map[string]int   // of kernels, in each row
}

// row is what a program is known by.
type row struct{ object, program, section string }

func rowOf(p *Program) row { return row{p.Object, p.Name, p.Section} }

// has reports whether the report has a program.
func (b *Baseline) has(p *Program) bool {
	_, ok := b.rows[rowOf(p)]
	return ok
}

// ReadBaseline reads a report that was written as JSON. Errors name path.
func ReadBaseline(ctx context.Context, path string) (*Baseline, error) {
	type program struct {
		Object, Program, Section string
		Status                   []Status
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
	b := &Baseline{rows: make(map[row][]Status), columns: make(map[string]int)}
	unnamed := false
	for i, k := range r.Kernels {
		b.columns[k.Name], unnamed = i, unnamed || k.Name == ""
	}
	for _, p := range slices.Concat(r.Objects, r.Programs) {
		unnamed = unnamed || p.Object == ""
		if len(p.Status) != len(r.Kernels) {
			return nil, fmt.Errorf("%s: not %s: %s: %d verdicts on %d kernels", path, what, cmp.Or(p.Program, p.Object), len(p.Status), len(r.Kernels))
		}
		b.rows[row{p.Object, p.Program, p.Section}] = p.Status
	}
	if unnamed {
		return nil, fmt.Errorf("%s: not %s: a kernel or an object has no name", path, what)
	}
	return b, nil
}

// Compare returns which programs changed since an older report, in the order of r.
// Programs and kernels that the old one does not have count as ok there, so
// that new failures are found; such programs are Added. Those that r does not
// have are left out.
func (r *Report) Compare(old *Baseline) (out []Change) {
	for i := range r.Programs {
		p := &r.Programs[i]
		added := !old.has(p)
		old.each(r, rowOf(p), p.Status, func(k int, before Status) {
			out = append(out, Change{p.Object, p.Name, r.Kernels[k].Name, before, p.Status[k], added, added})
		})
	}
	return out
}

// CompareObjects is Compare for whole objects, on the kernels that sel chooses.
func (r *Report) CompareObjects(old *Baseline, sel func(kernel int) bool) (out []Change) {
	for i := range r.Objects {
		o := &r.Objects[i]
		_, known := old.rows[row{object: o.Object}]
		old.each(r, row{object: o.Object}, o.Status, func(k int, before Status) {
			if !sel(k) {
				return
			}
			c := Change{Object: o.Object, Kernel: r.Kernels[k].Name, Old: before, New: o.Status[k], Added: !known}
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

// each calls changed for each kernel on which the verdict on something differs.
func (b *Baseline) each(r *Report, of row, now []Status, changed func(k int, before Status)) {
	was := b.rows[of]
	for k, s := range now {
		before := OK
		if col, ok := b.columns[r.Kernels[k].Name]; ok && was != nil {
			before = was[col]
		}
		if s != before && max(s, before) > Other {
			changed(k, before)
		}
	}
}
