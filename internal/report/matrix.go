// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/text/words"
)

// matrix is the rows and columns of a report as text, Markdown and HTML show them.
type matrix struct {
	columns []column
	rows    []row
	hidden  []string // machines that no object is for
	legend  []string // meanings of the words in cells, and full names of columns
}

// column is lines of one machine with one name.
type column struct {
	machine, name string
	lines         []int
}

// row is an object, an executable or variants, or programs of an object.
type row struct {
	name    string
	program bool
	object  int                // index of Report.Objects, or -1
	of      *verdict.ObjectRow // nil for programs
	cells   []verdict.Cell     // one per column
	alike   int                // how many other rows have the same cells and are not shown
}

// fine reports whether what a row is about works wherever it is loaded.
func (r *row) fine() bool {
	return !slices.ContainsFunc(r.cells, func(c verdict.Cell) bool { return c.Judged() != c.Works })
}

const (
	mostRows    = 12 // rows above which those with the same cells are one
	mostUndated = 6  // kernels without a release above which they are one column
	longName    = 14 // characters of the name of a kernel without a release above which its column has a number
)

// newMatrix returns the matrix of a report. With programs, an object's row is followed by rows of the programs that it needs, if
// their cells differ from its own. The whole matrix has all programs. Else rows with equal cells are one, those of objects if they are
// many.
func newMatrix(r *verdict.Report, programs, whole bool) *matrix {
	m := new(matrix)
	status := m.setRows(r, programs, whole)
	m.setColumns(r, status)
	for i := range m.rows {
		cells := r.CellsOf(status[i])
		for _, c := range m.columns {
			var sum verdict.Cell
			for _, l := range c.lines {
				sum = sumCells(sum, cells[l])
			}
			m.rows[i].cells = append(m.rows[i].cells, sum)
		}
	}
	if !programs {
		slices.SortStableFunc(m.rows, func(a, b row) int { return b2i(a.fine()) - b2i(b.fine()) })
	}
	if len(m.rows) > mostRows && !whole {
		m.join()
	}
	m.explain()
	return m
}

// setRows makes a row of each executable, variants, object and, with programs, some or all programs. It returns their verdicts.
func (m *matrix) setRows(r *verdict.Report, programs, whole bool) (status [][]rule.Status) {
	add := func(x row, s []rule.Status) { m.rows, status = append(m.rows, x), append(status, s) }
	for _, rows := range [][]verdict.ObjectRow{r.Executables, r.Variants} {
		for i := range rows {
			add(row{name: rows[i].Object, object: -1, of: &rows[i]}, rows[i].Status)
		}
	}
	for i := range r.Objects {
		o := &r.Objects[i]
		add(row{name: o.Object, object: i, of: o}, o.Status)
		if !programs {
			continue
		}
		for _, p := range o.Programs {
			s := r.Programs[p].Status
			last := len(m.rows) - 1
			switch {
			case alike(r, s, o.Status) || !whole && !decides(o, p, s):
			case !whole && m.rows[last].program && alike(r, s, status[last]):
				m.rows[last].alike++
			default:
				add(row{name: r.Programs[p].Name, program: true, object: i}, s)
			}
		}
	}
	return status
}

// decides reports whether an object needs a program wherever the program does not work.
func decides(o *verdict.ObjectRow, program int, status []rule.Status) bool {
	for k, s := range status {
		if s > rule.Other && o.Status[k] <= rule.Guarded {
			return false
		}
	}
	return slices.ContainsFunc(o.Decides, func(d verdict.Decider) bool { return d.Program == program })
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// alike reports whether two rows of verdicts have the same cells.
func alike(r *verdict.Report, a, b []rule.Status) bool {
	return slices.Equal(r.CellsOf(a), r.CellsOf(b))
}

// setColumns makes columns of the lines that a row is for. Of kernels without a release, many are one column, and long names are numbers.
func (m *matrix) setColumns(r *verdict.Report, status [][]rule.Status) {
	undated := 0
	used := make([]bool, len(r.Lines))
	for i := range r.Lines {
		used[i] = slices.ContainsFunc(status, func(s []rule.Status) bool {
			return slices.ContainsFunc(r.Lines[i].Kernels, func(k int) bool { return s[k] != rule.Other })
		})
		if used[i] && r.Lines[i].Machine == verdict.Unknown {
			undated++
		}
	}
	number := 0
	for i := range r.Lines {
		l := &r.Lines[i]
		switch {
		case !used[i]:
			continue
		case l.Machine != verdict.Unknown || undated <= mostUndated && utf8.RuneCountInString(l.Name) <= longName:
			m.columns = append(m.columns, column{l.Machine, l.Name, []int{i}})
		case undated <= mostUndated:
			number++
			m.columns = append(m.columns, column{l.Machine, fmt.Sprint("#", number), []int{i}})
			m.legend = append(m.legend, fmt.Sprintf("#%d is %s", number, l.Name))
		default:
			if n := len(m.columns) - 1; n < 0 || m.columns[n].machine != l.Machine {
				m.columns = append(m.columns, column{l.Machine, words.Plural(undated, "kernel"), nil})
			}
			c := &m.columns[len(m.columns)-1]
			c.lines = append(c.lines, i)
		}
	}
	for i := range r.Lines {
		machine := r.Lines[i].Machine
		if !slices.ContainsFunc(m.columns, func(c column) bool { return c.machine == machine }) && !slices.Contains(m.hidden, machine) {
			m.hidden = append(m.hidden, machine)
		}
	}
}

// join makes one row of those with the same cells.
func (m *matrix) join() {
	var out []row
	for _, x := range m.rows {
		i := slices.IndexFunc(out, func(o row) bool { return slices.Equal(o.cells, x.cells) })
		if i < 0 {
			out = append(out, x)
			continue
		}
		out[i].alike++
	}
	m.rows = out
}

// label names a row.
func (r *row) label() string {
	name := r.name
	if r.alike > 0 {
		name += fmt.Sprintf(" and %d more", r.alike)
	}
	if r.program {
		return "  " + name
	}
	return name
}

// explain adds what the words of cells mean that do not say it.
func (m *matrix) explain() {
	var all []string
	for i := range m.rows {
		for _, c := range m.rows[i].cells {
			switch w := word(c); w {
			case "ok", "fails":
			case uncertain:
				all = append(all, "? uncertain")
			case notLoaded:
				all = append(all, "off: not loaded")
			case otherMachine:
				all = append(all, "–: not for this machine")
			default:
				all = append(all, fmt.Sprintf("%s: certain to work on %d of %s, and fails or is uncertain on the others", w, c.Works, words.Plural(c.Judged(), "kernel")))
			}
		}
	}
	all = sorted(all)
	if n := slices.IndexFunc(all, func(s string) bool { return strings.Contains(s, ": certain") }); n >= 0 { // one is enough
		first := all[n]
		all = append(slices.DeleteFunc(all, func(s string) bool { return strings.Contains(s, ": certain") }), first)
	}
	m.legend = append(all, m.legend...)
	if len(m.hidden) > 0 {
		m.legend = append(m.legend, "no object is for the kernels of "+strings.Join(m.hidden, ", "))
	}
}

// block is columns that are side by side.
type block struct{ from, to int }

// blocks cuts the columns, where possible between machines, so that each block with names of a width fits a terminal.
func (m *matrix) blocks(name, terminal int) (out []block) {
	for _, part := range m.parts(terminal - name) {
		if n := len(out) - 1; n >= 0 && name+m.widthOf(block{out[n].from, part.to}) <= terminal {
			out[n].to = part.to
			continue
		}
		out = append(out, part)
	}
	return out
}

// parts cuts the columns between machines, and those of a machine where they are wider than a width.
func (m *matrix) parts(width int) (out []block) {
	for i := range m.columns {
		n := len(out) - 1
		if n < 0 || m.starts(i) || m.widthOf(block{out[n].from, i + 1}) > width {
			out = append(out, block{i, i + 1})
			continue
		}
		out[n].to = i + 1
	}
	return out
}

// widthOf is the width of columns with the spaces before them.
func (m *matrix) widthOf(b block) (w int) {
	for i := b.from; i < b.to; i++ {
		if w += m.width(i) + 1; i > b.from && m.starts(i) {
			w += 2
		}
	}
	return w
}

// starts reports whether a column is the first of its machine.
func (m *matrix) starts(i int) bool { return i == 0 || m.columns[i].machine != m.columns[i-1].machine }

// width is that of a column. The only column of a machine is as wide as the machine's name.
func (m *matrix) width(i int) int {
	w := utf8.RuneCountInString(m.columns[i].name)
	if m.starts(i) && (i+1 == len(m.columns) || m.starts(i+1)) {
		w = max(w, utf8.RuneCountInString(m.columns[i].machine))
	}
	for r := range m.rows {
		w = max(w, utf8.RuneCountInString(word(m.rows[r].cells[i])))
	}
	return w
}
