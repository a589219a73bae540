// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/text/escape"
)

// Markdown writes the report for a pull request: what changed since the baseline, the matrix, and the causes by what to do about them.
func Markdown(w io.Writer, r *verdict.Report, o Options) error {
	s := summarize(r, o)
	m := &markdownWriter{Report: s.Report, o: o}
	m.line("### Portability: %s\n", escape.Markdown(s.verdict(false)))
	if o.Baseline != nil {
		m.changes(r)
	}
	m.matrix()
	for _, text := range slices.Concat(s.unloaded(), s.remarks(o.Verbose)) {
		m.line("- %s", escape.Markdown(text))
	}
	m.causes()
	_, err := io.WriteString(w, m.String())
	return err
}

type markdownWriter struct {
	strings.Builder
	*verdict.Report
	o Options
}

func (m *markdownWriter) line(format string, args ...any) {
	m.WriteString(fmt.Sprintf(format+"\n", args...))
}

// changes writes what is worse and better than in the baseline, and what it has and the report has not.
func (m *markdownWriter) changes(r *verdict.Report) {
	all := changes(r, m.o.Baseline)
	for _, part := range all {
		m.line("#### %s\n\n| program | was | is | where |\n|---|---|---|---|", part.Title)
		for _, c := range part.Rows {
			m.line("| %s | %s | %s %s | %s |", escape.Markdown(c.Name), strings.TrimSpace(c.Icon+" "+c.Was), c.New.Icon(), c.Is, escape.Markdown(c.Where))
		}
		m.line("")
	}
	if len(m.o.Lost) > 0 {
		m.line("#### In the baseline, not checked now\n")
		for _, text := range lostTexts(r, m.o.Lost) {
			m.line("- %s", escape.Markdown(strings.TrimPrefix(text, goneText)))
		}
		m.line("")
	} else if len(all) == 0 {
		m.line("Nothing is worse or better than the baseline.\n")
	}
}

// matrix writes the matrix as a table.
func (m *markdownWriter) matrix() {
	x := newMatrix(m.Report, m.o.Verbose, m.o.Verbose)
	if len(x.columns) == 0 {
		return
	}
	head, rule := "| |", "|---|"
	for i, c := range x.columns {
		name := escape.Markdown(c.name)
		if i == 0 || c.machine != x.columns[i-1].machine {
			name = escape.Markdown(c.machine) + " " + name
		}
		head, rule = head+" "+name+" |", rule+":-:|"
	}
	m.line("%s\n%s", head, rule)
	for i := range x.rows {
		row := &x.rows[i]
		line := "| " + escape.Markdown(strings.TrimSpace(row.label())) + " |"
		for _, c := range row.cells {
			line += " " + icon(c) + " |"
		}
		m.line("%s", line)
	}
	m.line("")
	if len(x.legend) > 0 {
		m.line("%s\n", escape.Markdown(strings.Join(x.legend, " · ")))
	}
}

// icon shows a cell in Markdown: an icon, or how many kernels work.
func icon(c verdict.Cell) string {
	switch w := word(c); w {
	case "ok", "fails":
		return signOf(c).Icon()
	case uncertain:
		return signOf(c).Icon() + " " + w
	default:
		return w
	}
}

// Icon shows the cell in Markdown.
func (c cell) Icon() string { return cellTexts[c].icon }

// causes writes a table of causes for each advice.
func (m *markdownWriter) causes() {
	all := slices.Concat(m.Causes, m.Warnings)
	if m.o.Verbose {
		all = slices.Concat(m.All(), m.Warnings)
	}
	most := 5
	if m.o.Verbose {
		most = 1000
	}
	var order []string
	by := make(map[string][]*verdict.Cause)
	for i := range all {
		a := advice(&all[i], false)
		if by[a] == nil {
			order = append(order, a)
		}
		by[a] = append(by[a], &all[i])
	}
	for _, a := range order {
		m.line("\n#### %s\n\n| | what | where | programs |\n|---|---|---|---|", escape.Markdown(a))
		for _, c := range by[a] {
			loader, source := "", ""
			if c.Loader != "" {
				loader = " with " + string(c.Loader)
			}
			if len(c.Sources) > 0 {
				slices.SortFunc(c.Sources, comparePlaces)
				source = " (" + escape.Markdown(lines(c.Sources, most)) + ")"
			}
			var what []string
			if text := subjectsOf(c, most); text != "" {
				what = append(what, escape.Code(text))
			}
			if text := reasonOf(c); text != "" {
				what = append(what, escape.Markdown(text))
			}
			m.line("| %s %s%s | %s %s%s | %s | %s |", cellOfFinding(c.Status, c.Attach).Icon(), causeStatus(c), loader, strings.Join(what, ": "), escape.Code("["+string(c.Code)+"]"), source,
				escape.Markdown(where(m.Report, c)), escape.Markdown(programs(m.Report, c.Programs, 2*most)))
		}
	}
}
