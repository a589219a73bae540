package check

import (
	"fmt"
	"slices"
)

// Change is a program whose verdict on a kernel differs from an older report's.
type Change struct {
	Object  string `json:"object"`
	Program string `json:"program"`
	Kernel  string `json:"kernel"`
	Old     Status `json:"old"`
	New     Status `json:"new"`
}

// Worse reports whether it is a change for the worse that matters: being
// guarded is as good as being ok.
func (c *Change) Worse() bool { return c.New > c.Old && c.New > Other }

// Compare returns what changed since an older report, in the order of r.
// Programs and kernels that the old one does not have count as ok there, so
// that new failures are found; those that r does not have are left out.
func (r *Report) Compare(old *Report) ([]Change, error) {
	if old.Version != ReportVersion {
		return nil, fmt.Errorf("baseline: version %d, want %d", old.Version, ReportVersion)
	}
	type key struct{ object, program, section string }
	rows := make(map[key]*Program)
	for i := range old.Programs {
		p := &old.Programs[i]
		if len(p.Status) != len(old.Kernels) {
			return nil, fmt.Errorf("baseline: %s: %d verdicts on %d kernels", p.Name, len(p.Status), len(old.Kernels))
		}
		rows[key{p.Object, p.Name, p.Section}] = p
	}
	columns := make(map[string]int)
	for i, k := range old.Kernels {
		columns[k.Name] = i
	}
	var out []Change
	for i := range r.Programs {
		p := &r.Programs[i]
		was := rows[key{p.Object, p.Name, p.Section}]
		for k, s := range p.Status {
			before := OK
			if col, ok := columns[r.Kernels[k].Name]; ok && was != nil {
				before = was.Status[col]
			}
			if s != before && max(s, before) > Other {
				out = append(out, Change{p.Object, p.Name, r.Kernels[k].Name, before, s})
			}
		}
	}
	return out, nil
}

// Difference is what one program uses that two kernels disagree on.
type Difference struct {
	Program int
	Finding Finding
	Only    int // index of the kernel that has the finding
}

// Diff returns what differs between two kernels of the report, by program.
func (r *Report) Diff(a, b int) []Difference {
	var out []Difference
	for i := range r.Programs {
		for _, f := range r.Programs[i].Findings {
			onA, onB := slices.Contains(f.Kernels, a), slices.Contains(f.Kernels, b)
			switch {
			case onA && !onB:
				out = append(out, Difference{i, f.Finding, a})
			case onB && !onA:
				out = append(out, Difference{i, f.Finding, b})
			}
		}
	}
	return out
}
