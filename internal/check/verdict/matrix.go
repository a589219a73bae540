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
	Name    string `json:"line"`    // "6.1"; for machine Unknown, the name of the only kernel
	Kernels []int  `json:"kernels"` // indices of Report.Kernels, ascending

	release rule.Release
}

// Cell counts the kernels of a line by the verdict on an object. It is zero if the object is for other machines.
type Cell struct {
	Works     int `json:"works,omitempty"` // ok or guarded
	Fails     int `json:"fails,omitempty"`
	Uncertain int `json:"uncertain,omitempty"`  // may fail or unknown
	Unloaded  int `json:"not_loaded,omitempty"` // not loaded because of options, or because another variant is
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

// rank orders machines: what readers look for first, then others by name, then kernels without a release.
func rank(machine string) int {
	switch machine {
	case "x86_64":
		return 0
	case "arm64":
		return 1
	case Unknown:
		return 3
	}
	return 2
}

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
	slices.SortStableFunc(r.Lines, func(a, b Line) int {
		return cmp.Or(cmp.Compare(rank(a.Machine), rank(b.Machine)),
			cmp.Compare(a.Machine, b.Machine), cmp.Compare(a.release, b.release))
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
