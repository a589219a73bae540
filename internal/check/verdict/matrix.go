// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"cmp"
	"slices"

	"github.com/btfgen/btfgen/internal/check/rule"
)

// Unknown is the machine of lines whose kernels' names lack a machine or a release.
const Unknown = "unknown"

// Line is a column of the matrix: the kernels of one machine and one release of Linux, whatever their patch levels and distributions.
type Line struct {
	Machine string `json:"machine"` // "x86_64", or Unknown
	Name    string `json:"line"`    // "6.1"; of the machine Unknown, the name of its only kernel
	Kernels []int  `json:"kernels"` // indices of Report.Kernels, ascending

	release rule.Release
}

// Cell counts the kernels of a line by the verdict on an object. It is zero if the object is for other machines.
type Cell struct {
	Works     int `json:"works,omitempty"` // ok or guarded
	Fails     int `json:"fails,omitempty"`
	Uncertain int `json:"uncertain,omitempty"`  // may fail or unknown
	Unloaded  int `json:"not_loaded,omitempty"` // by options, or as another variant is loaded
}

// Judged returns the number of kernels on which the object is loaded.
func (c Cell) Judged() int { return c.Works + c.Fails + c.Uncertain }

// AllWork reports whether the object is loaded, and works wherever it is.
func (c Cell) AllWork() bool { return c.Works > 0 && c.Works == c.Judged() }

// NeverLoaded reports whether the object is for some of the kernels and loaded on none.
func (c Cell) NeverLoaded() bool { return c.Judged() == 0 && c.Unloaded > 0 }

// add counts a verdict.
func (c *Cell) add(s rule.Status) {
	switch {
	case s == rule.Unloaded:
		c.Unloaded++
	case s == rule.Other:
	case s <= rule.Guarded:
		c.Works++
	case s == rule.Fails:
		c.Fails++
	default:
		c.Uncertain++
	}
}

// cellOf counts the verdicts on some kernels.
func cellOf(status []rule.Status, kernels []int) (c Cell) {
	for _, k := range kernels {
		c.add(status[k])
	}
	return c
}

// Sum counts the verdicts on all kernels.
func (o *ObjectRow) Sum() (c Cell) {
	for _, s := range o.Status {
		c.add(s)
	}
	return c
}

// CellsOf counts verdicts by kernel for each line.
func (r *Report) CellsOf(status []rule.Status) []Cell {
	cells := make([]Cell, len(r.Lines))
	for i := range r.Lines {
		cells[i] = cellOf(status, r.Lines[i].Kernels)
	}
	return cells
}

// machineOrder has the machines that come before others, which are sorted by name.
var machineOrder = []string{Unknown, "arm64", "x86_64"}

// setLines groups the kernels of the report by machine and release, oldest first. Kernels that lack one of both have a line each.
func (r *Report) setLines() {
	r.Lines = nil
	at := make(map[string]int)
	for k := range r.Kernels {
		machine, release := r.Kernels[k].machine(), r.Kernels[k].release()
		name := release.String()
		if machine == "" || release == 0 {
			machine, name, release = Unknown, r.Kernels[k].Name, 0
		}
		key := machine + " " + name
		i, ok := at[key]
		if !ok {
			i = len(r.Lines)
			at[key] = i
			r.Lines = append(r.Lines, Line{Machine: machine, Name: name, release: release})
		}
		r.Lines[i].Kernels = append(r.Lines[i].Kernels, k)
	}
	rank := func(machine string) int {
		if machine == Unknown {
			return 1
		}
		return -slices.Index(machineOrder, machine)
	}
	slices.SortStableFunc(r.Lines, func(a, b Line) int {
		return cmp.Or(cmp.Compare(rank(a.Machine), rank(b.Machine)), cmp.Compare(a.Machine, b.Machine), cmp.Compare(a.release, b.release))
	})
}

// Summarize sets what follows from the verdicts on programs and objects: lines, cells, minima, causes and warnings.
func (r *Report) Summarize() {
	r.setLines()
	for _, rows := range [][]ObjectRow{r.Objects, r.Variants, r.Executables} {
		for i := range rows {
			r.sum(&rows[i])
		}
	}
	for i := range r.Proposals {
		r.sum(&r.Proposals[i].Now)
		r.sum(&r.Proposals[i].Row)
	}
	r.Causes, r.Warnings = r.causes(deciding), r.causes(warnings)
}

// sum sets the cells and minima of a row.
func (r *Report) sum(row *ObjectRow) {
	row.Cells = r.CellsOf(row.Status)
	row.Minima = r.minima(row)
	if s := row.Suggestion; s != nil {
		r.sum(&s.Row)
	}
}

// Only returns the report on the kernels that keep chooses, which count from 0 there. It shares what does not depend on kernels.
func (r *Report) Only(keep func(kernel int) bool) *Report {
	out := &Report{Version: r.Version, Skipped: r.Skipped}
	index := make([]int, len(r.Kernels)) // in out, or -1
	for k := range r.Kernels {
		if index[k] = -1; keep(k) {
			index[k] = len(out.Kernels)
			out.Kernels = append(out.Kernels, r.Kernels[k])
		}
	}
	kernels := func(all []int) (some []int) {
		for _, k := range all {
			if index[k] >= 0 {
				some = append(some, index[k])
			}
		}
		return some
	}
	statuses := func(all []rule.Status) (some []rule.Status) {
		for k, s := range all {
			if index[k] >= 0 {
				some = append(some, s)
			}
		}
		return some
	}
	row := func(o ObjectRow) ObjectRow {
		o.Status, o.Load, o.Loaders = statuses(o.Status), statuses(o.Load), slices.Clone(o.Loaders)
		for i := range o.Loaders {
			l := &o.Loaders[i]
			l.Status, l.Load = statuses(l.Status), statuses(l.Load)
		}
		var decides []Decider
		for _, d := range o.Decides {
			if d.Kernels = kernels(d.Kernels); len(d.Kernels) > 0 {
				decides = append(decides, d)
			}
		}
		o.Decides = decides
		return o
	}
	for _, p := range r.Programs {
		p.Status, p.Load = statuses(p.Status), statuses(p.Load)
		var findings []KernelFinding
		for _, f := range p.Findings {
			if f.Kernels = kernels(f.Kernels); len(f.Kernels) > 0 {
				findings = append(findings, f)
			}
		}
		p.Findings = findings
		out.Programs = append(out.Programs, p)
	}
	for from, to := range map[*[]ObjectRow]*[]ObjectRow{&r.Objects: &out.Objects, &r.Executables: &out.Executables, &r.Variants: &out.Variants} {
		for _, o := range *from {
			o = row(o)
			if s := o.Suggestion; s != nil {
				o.Suggestion = &Suggestion{s.Options, row(s.Row), s.Targets}
			}
			*to = append(*to, o)
		}
	}
	for _, p := range r.Proposals {
		out.Proposals = append(out.Proposals, Proposal{p.Options, row(p.Now), row(p.Row)})
	}
	out.Summarize()
	return out
}
