// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bufio"
	"io"
	"strings"

	"github.com/btfgen/btfgen/internal/check"
	"github.com/btfgen/btfgen/internal/text/escape"
)

// maxTable is how many columns a table in a pull request can have.
const maxTable = 24

// Markdown writes the report for a pull request.
func Markdown(w io.Writer, r *check.Report, o Options) error {
	b := bufio.NewWriter(w)
	m := newMatrix(r, o.Verbose)
	escape.Fprintf(b, "### Portability: %s\n", summaryLine(r))
	m.headlines(b)
	if o.Baseline != nil {
		m.changes(b, o.Baseline)
	}
	if len(m.rows) > 0 && len(m.columns) <= maxTable {
		m.table(b)
	}
	if s := m.rest(); s != "" {
		escape.Fprintf(b, "\n%s.\n", s)
	}
	most := 5
	if o.Verbose {
		most = 1000
	}
	last := ""
	for _, g := range m.causes(o.Verbose) {
		if g.advice != last {
			last = g.advice
			escape.Fprintf(b, "\n#### %s\n\n| kernels | | what | where | programs |\n|--:|---|---|---|---|\n", escape.Markdown(last))
		}
		what := escape.Code(g.subject(most)) + ": " + escape.Markdown(g.why) + " " + escape.Code("["+string(g.code)+"]")
		if len(g.sources) > 0 {
			what += " (" + escape.Markdown(places(g.sources, most)) + ")"
		}
		escape.Fprintf(b, "| %d | %s %s | %s | %s | %s |\n", len(g.kernels), cellTexts[g.cell()].icon, g.verdict(), what,
			escape.Markdown(m.where(g.kernels, most)), escape.Markdown(m.programs(g.programs, 2*most)))
	}
	return b.Flush()
}

// headlines lists the objects' headlines, of those that do not work everywhere first.
func (m *matrix) headlines(b *bufio.Writer) {
	escape.Fprintf(b, "\n")
	for _, o := range m.objectsByNeed() {
		escape.Fprintf(b, "- %s: %s\n", escape.Markdown(o.Object), escape.Markdown(Headline(m.Report, o)))
		for _, remark := range m.remarks(o, false) {
			escape.Fprintf(b, "  - %s\n", escape.Markdown(remark))
		}
	}
}

func (m *matrix) table(b *bufio.Writer) {
	escape.Fprintf(b, "\n| program |")
	for i := range m.columns {
		escape.Fprintf(b, " %d |", i+1)
	}
	escape.Fprintf(b, "\n|---|%s\n", strings.Repeat(":-:|", len(m.columns)))
	for i := range m.rows {
		row := &m.rows[i]
		if row.programs == nil {
			escape.Fprintf(b, "| %s |", escape.Markdown(m.name(row)))
		} else {
			escape.Fprintf(b, "| %s: %s |", escape.Markdown(row.object.Object), escape.Markdown(m.name(row)))
		}
		for c := range m.columns {
			escape.Fprintf(b, " %s |", cellTexts[m.at(row, c)].icon)
		}
		escape.Fprintf(b, "\n")
	}
	escape.Fprintf(b, "\n")
	for i, c := range m.signs() {
		if i > 0 {
			escape.Fprintf(b, " · ")
		}
		escape.Fprintf(b, "%s %s", cellTexts[c].icon, cellTexts[c].name)
	}
	escape.Fprintf(b, "\n\n")
	for i, c := range m.columns {
		escape.Fprintf(b, "%d. %s\n", i+1, escape.Markdown(label(m.Report, c)))
	}
}

// changes writes what got worse and what got better, objects first.
func (v *view) changes(b *bufio.Writer, old *check.Baseline) {
	l := v.CompareObjects(old, func(int) bool { return true })
	for i := range l {
		l[i].Program = "" // whichever decides
	}
	l = append(l, v.Compare(old)...)
	at := make(map[string]int)
	for k := range v.Kernels {
		at[v.Kernels[k].Name] = k
	}
	any := false
	for _, part := range []struct {
		title string
		in    func(*check.Change) bool
	}{
		{"Worse", (*check.Change).Worse},
		{"Better", func(c *check.Change) bool { return c.New < c.Old }},
	} {
		var rows []check.Change // without kernels
		on := make(map[check.Change][]int)
		for _, c := range l {
			if k := at[c.Kernel]; part.in(&c) {
				if c.Kernel = ""; on[c] == nil {
					rows = append(rows, c)
				}
				on[c] = append(on[c], k)
			}
		}
		for i, c := range rows {
			if i == 0 {
				escape.Fprintf(b, "\n#### %s than the baseline\n\n| program | was | is | where |\n|---|---|---|---|\n", part.title)
				any = true
			}
			name := c.Object
			if c.Program != "" {
				name += ": " + c.Program
			}
			escape.Fprintf(b, "| %s | %s %s | %s %s | %s |\n", escape.Markdown(name),
				cellTexts[cellFor(c.Old)].icon, c.Old, cellTexts[cellFor(c.New)].icon, c.New, escape.Markdown(v.where(on[c], 5)))
		}
	}
	if !any {
		escape.Fprintf(b, "\nNothing is worse or better than the baseline.\n")
	}
}
