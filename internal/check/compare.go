// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"context"
	"errors"
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
	kernels int
	names   int // bytes
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
	old := &Baseline{rows: make(map[row][]Status), columns: make(map[string]int)}
	err := jsonfile.Read(ctx, path, limits.ReportBytes, "a report of check --json", func(d *jsonfile.Decoder) error {
		version := 0
		err := d.Object(func(name string) error {
			switch name {
			case "version":
				return d.Value(&version)
			case "kernels":
				return d.Array(limits.EarlierKernels, "kernels", func() error { return old.kernel(d) })
			case "objects":
				return d.Array(limits.ReportPrograms, "objects", func() error { return old.row(d) })
			case "programs":
				return d.Array(limits.ReportPrograms, "programs", func() error { return old.row(d) })
			}
			return d.Skip()
		})
		return cmp.Or(err, d.End(), old.complete(version))
	})
	return old, err
}

func (b *Baseline) kernel(d *jsonfile.Decoder) error {
	var k struct{ Name string }
	if err := d.Value(&k); err != nil {
		return err
	}
	if err := b.name(k.Name); err != nil {
		return err
	}
	b.columns[k.Name] = b.kernels
	b.kernels++
	return nil
}

// row reads an object or a program.
func (b *Baseline) row(d *jsonfile.Decoder) error {
	var p struct {
		Object, Program, Section string
		Status                   []Status
	}
	if err := d.Value(&p); err != nil {
		return err
	}
	if err := b.name(p.Object, p.Program, p.Section); err != nil {
		return err
	}
	b.rows[row{p.Object, p.Program, p.Section}] = p.Status
	return nil
}

// name returns an error if there is no name, or if there are too many to keep.
func (b *Baseline) name(name string, more ...string) error {
	if name == "" {
		return errors.New("has no name")
	}
	b.names += len(name)
	for _, m := range more {
		b.names += len(m)
	}
	if b.names > limits.ReportNames {
		return fmt.Errorf("too large: names of more than %d MiB", limits.ReportNames>>20)
	}
	return nil
}

// complete returns an error if parts of the report do not belong together.
func (b *Baseline) complete(version int) error {
	if version != ReportVersion {
		return fmt.Errorf("version %d, want %d", version, ReportVersion)
	}
	for r, status := range b.rows {
		if len(status) != b.kernels {
			return fmt.Errorf("%s: %d verdicts on %d kernels", cmp.Or(r.program, r.object), len(status), b.kernels)
		}
	}
	return nil
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
