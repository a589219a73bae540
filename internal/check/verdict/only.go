// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"slices"

	"github.com/btfgen/btfgen/internal/check/rule"
)

// Only returns the report on the kernels that keep chooses, which count from 0 there. It shares what does not depend on kernels.
func (r *Report) Only(keep func(kernel int) bool) *Report {
	out := &Report{Version: r.Version, Skipped: r.Skipped}
	var o only
	for k := range r.Kernels {
		if o = append(o, -1); keep(k) {
			o[k] = len(out.Kernels)
			out.Kernels = append(out.Kernels, r.Kernels[k])
		}
	}
	for _, p := range r.Programs {
		out.Programs = append(out.Programs, o.program(p))
	}
	out.Objects, out.Executables, out.Variants = o.rows(r.Objects), o.rows(r.Executables), o.rows(r.Variants)
	for _, p := range r.Proposals {
		out.Proposals = append(out.Proposals, Proposal{p.Options, o.row(p.Now), o.row(p.Row)})
	}
	out.Summarize()
	return out
}

// only is the new indices of kernels, by the old ones, or -1 for those that are left out.
type only []int

func (o only) kernels(all []int) (some []int) {
	for _, k := range all {
		if o[k] >= 0 {
			some = append(some, o[k])
		}
	}
	return some
}

func (o only) statuses(all []rule.Status) (some []rule.Status) {
	for k, s := range all {
		if o[k] >= 0 {
			some = append(some, s)
		}
	}
	return some
}

func (o only) program(p ProgramRow) ProgramRow {
	p.Status, p.Load = o.statuses(p.Status), o.statuses(p.Load)
	var findings []KernelFinding
	for _, f := range p.Findings {
		if f.Kernels = o.kernels(f.Kernels); len(f.Kernels) > 0 {
			findings = append(findings, f)
		}
	}
	p.Findings = findings
	return p
}

func (o only) rows(all []ObjectRow) (out []ObjectRow) {
	for _, row := range all {
		out = append(out, o.row(row))
	}
	return out
}

func (o only) row(row ObjectRow) ObjectRow {
	row.Status, row.Load, row.Loaders = o.statuses(row.Status), o.statuses(row.Load), slices.Clone(row.Loaders)
	for i := range row.Loaders {
		l := &row.Loaders[i]
		l.Status, l.Load = o.statuses(l.Status), o.statuses(l.Load)
	}
	var decides []Decider
	for _, d := range row.Decides {
		if d.Kernels = o.kernels(d.Kernels); len(d.Kernels) > 0 {
			decides = append(decides, d)
		}
	}
	row.Decides = decides
	if s := row.Suggestion; s != nil {
		row.Suggestion = &Suggestion{s.Options, o.row(s.Row), s.Targets, s.Tails}
	}
	return row
}
