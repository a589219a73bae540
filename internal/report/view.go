// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// view is a report for people: its kernels are in an order in which neighbours are similar.
type view struct {
	*verdict.Report
	ordered  []int                 // indices of Kernels, by distribution, machine and release, whatever release of the distribution they are from
	required func(kernel int) bool // which kernels count in causes and headlines; nil for all
}

// newView returns the view of a report on which all kernels count.
func newView(r *verdict.Report) *view {
	v := &view{r, make([]int, len(r.Kernels)), nil}
	keys := make([]kernel.Key, len(r.Kernels))
	for i := range r.Kernels {
		keys[i], v.ordered[i] = r.Kernels[i].Key().Canonical(), i
	}
	slices.SortStableFunc(v.ordered, func(x, y int) int {
		a, b := keys[x], keys[y]
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Arch, b.Arch),
			kernel.CompareVersions(a.Release, b.Release), kernel.CompareVersions(a.VersionID, b.VersionID))
	})
	return v
}

// of returns the view in which only those kernels count that the options require.
func (v *view) of(o Options) *view {
	v.required = o.Required
	return v
}

// counts reports whether causes and headlines count a kernel.
func (v *view) counts(kernel int) bool { return v.required == nil || v.required(kernel) }

// spans cuts ordered kernels into runs, wherever same says that neighbours differ or their families do.
func (v *view) spans(ordered []int, same func(a, b int) bool) (out [][]int) {
	for i, k := range ordered {
		if i > 0 {
			prev := ordered[i-1]
			if f := v.Kernels[k].Family(); f != "" && f == v.Kernels[prev].Family() && same(prev, k) {
				out[len(out)-1] = append(out[len(out)-1], k)
				continue
			}
		}
		out = append(out, []int{k})
	}
	return out
}

// where folds a set of kernels into ranges, few if they are many.
func (v *view) where(set []int, most int) string {
	if len(set) == len(v.ordered) {
		if len(set) == 1 {
			return v.Kernels[set[0]].Name
		}
		return fmt.Sprintf("all %d kernels", len(set))
	}
	in := make([]bool, len(v.Kernels))
	for _, k := range set {
		in[k] = true
	}
	var labels []string
	for _, s := range v.spans(v.ordered, func(a, b int) bool { return in[a] == in[b] }) {
		if in[s[0]] {
			labels = append(labels, label(v.Report, s))
		}
	}
	if len(labels) > most {
		labels = append(labels[:most-1], fmt.Sprintf("%d more ranges", len(labels)-most+1))
	}
	return fmt.Sprintf("%s: %s", words.Plural(len(set), "kernel"), strings.Join(labels, "; "))
}

// programs names some programs, by object: "a.o: p, q; b.o: r".
func (v *view) programs(list []int, most int) string {
	parts := make([][2]string, len(list))
	for i, p := range list {
		parts[i] = [2]string{v.Programs[p].Object, v.Programs[p].Name}
	}
	return grouped(parts, ": ", most)
}

// line is a finding in a line: verdict, subject, what is wrong, place and code.
func line(f *rule.Finding) string {
	g := groupOf(f)
	s := g.text(1)
	if f.Source != "" {
		s += " (" + f.Source + ")"
	}
	return s + " [" + string(f.Code) + "]"
}

// cell is a verdict as tables show it: a status that is only about attaching is one
// of its own. Greater is worse.
type cell uint8

const (
	cellOK cell = iota
	cellGuarded
	cellUnloaded
	cellOther
	cellUnknown
	cellMayFailToAttach
	cellMayFail
	cellFailsToAttach
	cellFails
	numCell
)

// cellTexts has the cells in words, their signs and their colours on terminals.
var cellTexts = [numCell]struct {
	name  string
	sign  escape.Own
	color string
	icon  string // in Markdown
}{
	{"ok", "·", "32", "✅"},
	{"guarded", "g", "36", "🛡️"},
	{"not loaded", "o", "", "➖"},
	{"for other machines", "-", "", "–"},
	{"unknown", "u", "35", "❔"},
	{"loads, may fail to attach", "a", "33", "🔸"},
	{"may fail", "?", "33", "⚠️"},
	{"loads, fails to attach", "A", "31", "🔻"},
	{"fails", "X", "31", "❌"},
}

// cellOf returns the cell of a program or an object on kernel k from its verdicts
// by kernel. Those of loading may be absent.
func cellOf(status, load []rule.Status, k int) cell {
	loads := k < len(load) && load[k] <= rule.Guarded
	switch s := status[k]; {
	case s == rule.Fails && loads:
		return cellFailsToAttach
	case s == rule.MayFail && loads:
		return cellMayFailToAttach
	default:
		return cellFor(s)
	}
}

// cellFor returns the cell of a status alone.
func cellFor(s rule.Status) cell {
	switch s {
	case rule.Fails:
		return cellFails
	case rule.MayFail:
		return cellMayFail
	}
	return cell(s) // which are alike up to Unknown
}

// mrow is a row of a matrix: an object, or programs of it that are alike.
type mrow struct {
	programs []int  // none where the row is the object's own
	Cells    []cell // by kernel
	Object   string // of programs
	Name     string
}

// Label names the row below the object's.
func (m mrow) Label() string {
	if m.programs == nil {
		return escape.Text(m.Name)
	}
	return "  " + escape.Text(m.Name)
}

// judged reports whether a cell is a verdict on something that is loaded.
func (c cell) judged() bool { return c != cellUnloaded && c != cellOther }

// worst is the worst verdict on kernels that a row is for.
func (m *mrow) worst() cell {
	w := cellOK
	for _, c := range m.Cells {
		if c.judged() {
			w = max(w, c)
		}
	}
	return w
}

// spared reports whether the object works wherever the program does not.
func (m *mrow) spared(object []rule.Status) bool {
	for k, c := range m.Cells {
		if c > cellOther && object[k] > rule.Other {
			return false
		}
	}
	return true
}

// matrix is what of a report is not fine, by kernel. Neighbours that are equal are
// folded, and kernels left out that no row is for.
type matrix struct {
	*view
	Columns [][]int // kernels
	Rows    []mrow
	fine    int // programs that are not in it
	guarded int // of those, how many are guarded somewhere
	spared  int // programs that are not in it, because their objects do without
	other   int // programs that are not in it, because no kernel has their machine

	unloaded int // programs that are not in it, because they are loaded on no kernel
}

func newMatrix(r *verdict.Report, verbose bool) *matrix {
	m := &matrix{view: newView(r)}
	for i := range r.Objects {
		o := &r.Objects[i]
		if rows := m.rowsOf(o, verbose); len(rows) > 0 {
			m.Rows = append(append(m.Rows, mrow{Cells: cells(o.Status, o.Load), Name: o.Object}), rows...)
		}
	}
	shown := slices.DeleteFunc(slices.Clone(m.ordered), func(k int) bool {
		return !slices.ContainsFunc(m.Rows, func(row mrow) bool { return row.Cells[k] != cellOther })
	})
	m.Columns = m.spans(shown, func(a, b int) bool {
		return !slices.ContainsFunc(m.Rows, func(row mrow) bool { return row.Cells[a] != row.Cells[b] })
	})
	return m
}

// rowsOf returns the rows of an object's programs, and counts those that have none.
func (m *matrix) rowsOf(o *verdict.ObjectRow, verbose bool) (rows []mrow) {
	least := cellUnknown
	if verbose {
		least = cellGuarded
	}
	for _, i := range o.Programs {
		p := &m.Programs[i]
		row := mrow{programs: []int{i}, Cells: cells(p.Status, p.Load), Object: o.Object}
		n := len(rows)
		switch w := row.worst(); {
		case !slices.ContainsFunc(row.Cells, func(c cell) bool { return c != cellOther }):
			m.other++
		case !slices.ContainsFunc(row.Cells, cell.judged):
			m.unloaded++
		case w < least:
			m.fine++
			if w == cellGuarded {
				m.guarded++
			}
		case !verbose && row.spared(o.Status):
			m.spared++
		case !verbose && n > 0 && slices.Equal(rows[n-1].Cells, row.Cells):
			rows[n-1].programs = append(rows[n-1].programs, i)
		default:
			rows = append(rows, row)
		}
	}
	for i := range rows {
		rows[i].Name = m.name(rows[i].programs)
	}
	return rows
}

func cells(status, load []rule.Status) []cell {
	out := make([]cell, len(status))
	for k := range out {
		out[k] = cellOf(status, load, k)
	}
	return out
}

// name names the programs of a row within their object.
func (m *matrix) name(programs []int) string {
	p := &m.Programs[programs[0]]
	last := m.Programs[programs[len(programs)-1]].Name
	switch n := len(programs); n {
	case 1:
		return fmt.Sprintf("%s (%s)", p.Name, p.Section)
	case 2:
		return p.Name + ", " + last
	default:
		return fmt.Sprintf("%s … %s (%d)", p.Name, last, n)
	}
}

// Rest says how many programs are not in the matrix, "" if all are.
func (m *matrix) Rest() string {
	var parts []string
	if m.fine > 0 {
		parts = append(parts, words.Plural(m.fine, "program")+" ok on every kernel")
	}
	if m.guarded > 0 {
		parts = append(parts, fmt.Sprintf("%d of them thanks to guards", m.guarded))
	}
	if m.spared > 0 {
		parts = append(parts, fmt.Sprintf("%s not ok where the object does without", words.Plural(m.spared, "program")))
	}
	if m.unloaded > 0 {
		parts = append(parts, words.Plural(m.unloaded, "program")+" not loaded on any kernel")
	}
	if m.other > 0 {
		parts = append(parts, words.Plural(m.other, "program")+" for other machines")
	}
	return strings.Join(parts, ", ")
}

// objectsByNeed returns the rows of objects, those that do not work everywhere first.
func (v *view) objectsByNeed() []*verdict.ObjectRow {
	var bad, good []*verdict.ObjectRow
	for i := range v.Objects {
		if o := &v.Objects[i]; v.worksThroughout(o) {
			good = append(good, o)
		} else {
			bad = append(bad, o)
		}
	}
	return append(bad, good...)
}

// worksThroughout reports whether an object works on every kernel that counts and on which it is loaded, and is loaded on one, or on none for its
// machines alone.
func (v *view) worksThroughout(o *verdict.ObjectRow) bool {
	h := &v.counted(o).Headline
	return h.Works == h.Total && !h.NeverLoaded()
}

// Signs returns the cells that the matrix has, ascending.
func (m *matrix) Signs() []cell {
	var all []cell
	for _, row := range m.Rows {
		for _, c := range m.Columns {
			all = append(all, row.Cells[c[0]])
		}
	}
	return sorted(all)
}
