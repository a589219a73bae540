// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/btfgen/btfgen/internal/check"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
)

// Options of reports. The zero value is the short form.
type Options struct {
	Verbose bool // guards, notes, and all ranges
	Color   bool // of the text form, for terminals

	Baseline   *check.Baseline // of Markdown: say what got worse and better since
	Findings   any             // of JSON: what the run found
	SourceRoot string          // of SARIF: an absolute path, from which on sources are named
	Version    string          // btfgen's
	Command    string          // of HTML: what was run
	Date       string          // of HTML: when, "" to leave it out
}

// Formats are the writers of reports, by the name of the format.
var Formats = map[string]func(io.Writer, *check.Report, Options) error{
	"text": Text, "markdown": Markdown, "json": JSON, "junit": JUnit, "sarif": SARIF, "html": HTML,
	"min-kernel": Headlines, "table": Table, "badge": Badge,
}

// maxColumns is how wide a matrix is worth reading.
const maxColumns = 80

// Text writes the report for a terminal.
func Text(w io.Writer, r *check.Report, o Options) error {
	t := &text{Writer: bufio.NewWriter(w), o: o, m: newMatrix(r, o.Verbose)}
	escape.Fprintf(t, "%s\n", summaryLine(r))
	t.objects()
	t.matrix()
	t.causes()
	if o.Verbose {
		t.notes()
	}
	return t.Flush()
}

type text struct {
	*bufio.Writer
	o Options
	m *matrix
}

func (t *text) paint(c cell, str escape.Own) escape.Own {
	if color := cellTexts[c].color; t.o.Color && color != "" {
		return escape.Own("\x1b["+color+"m") + str + "\x1b[0m"
	}
	return str
}

func summaryLine(r *check.Report) string {
	objects := make(map[string]bool)
	for i := range r.Programs {
		objects[r.Programs[i].Object] = true
	}
	n := r.Counts()
	var parts []string
	for _, s := range []check.Status{check.Fails, check.MayFail, check.Unknown, check.Guarded, check.Other, check.OK} {
		if n[s] == 1 || n[s] > 1 && s != check.Fails {
			parts = append(parts, fmt.Sprintf("%d %s", n[s], s))
		} else if n[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d fail", n[s]))
		}
	}
	return fmt.Sprintf("%s of %s on %s: %s", words.Plural(len(r.Programs), "program"), words.Plural(len(objects), "object"),
		words.Plural(len(r.Kernels), "kernel"), strings.Join(parts, ", "))
}

// objects writes the headlines of the objects that do not work everywhere.
func (t *text) objects() {
	l := t.m.objectsByNeed()
	if len(l) == 0 {
		return
	}
	escape.Fprintf(t, "\nobjects:\n")
	for i, o := range l {
		if fine(o) && i > 0 && !t.o.Verbose { // like those that follow
			escape.Fprintf(t, "  and %s without failures\n", words.Plural(len(l)-i, "object"))
			break
		}
		escape.Fprintf(t, "  %s: %s\n", o.Object, Headline(t.m.Report, o))
		for _, remark := range t.m.remarks(o, t.o.Verbose) {
			escape.Fprintf(t, "    %s\n", remark)
		}
	}
}

// remarks says where loaders differ on an object and, if rules is set, which of its programs have to work.
func (v *view) remarks(o *check.ObjectRow, rules bool) (out []string) {
	for _, l := range o.Loaders {
		var alone [numCell][]int // kernels, by the verdict with this loader
		now := cells(l.Status, l.Load)
		for k, c := range now {
			if slices.ContainsFunc(o.Loaders, func(x check.LoaderRow) bool { return cellOf(x.Status, x.Load, k) < c }) {
				alone[c] = append(alone[c], k)
			}
		}
		for c, kernels := range alone {
			if len(kernels) > 0 {
				out = append(out, fmt.Sprintf("%s alone: %s on %s", l.Loader, cellTexts[c].name, v.where(kernels, 3)))
			}
		}
	}
	if rules {
		for i := range o.Rules {
			out = append(out, ruleText(v.Report, &o.Rules[i]))
		}
	}
	return out
}

// ruleText says what a rule says.
func ruleText(r *check.Report, rule *check.Rule) string {
	var alternatives []string
	for _, l := range rule.Programs {
		var names []string
		for _, p := range l {
			names = append(names, r.Programs[p].Name)
		}
		alternatives = append(alternatives, strings.Join(names, ", "))
	}
	s := ""
	switch rule.Kind {
	case check.Optional:
		s = "works without " + strings.Join(alternatives, ", ")
	case check.OneOf:
		s = "one of these has to work: " + strings.Join(alternatives, " | ")
	case check.OnlyWhen:
		s = strings.Join(alternatives, ", ") + " only on " + rule.When
	}
	if guess := guessText(rule); guess != "" {
		s += " (a guess: " + guess + ")"
	}
	return s
}

// matrix writes a line per object and program and a sign per range of kernels.
func (t *text) matrix() {
	m := t.m
	switch {
	case len(m.rows) == 0:
	case len(m.columns) > maxColumns:
		escape.Fprintf(t, "\n%d ranges of kernels are too many for a table; --format html has one\n", len(m.columns))
	default:
		t.table()
	}
	if s := m.rest(); s != "" {
		escape.Fprintf(t, "%s\n", s)
	}
}

func (t *text) table() {
	m := t.m
	escape.Fprintf(t, "\nkernels:\n")
	for i, c := range m.columns {
		escape.Fprintf(t, "  %3d  %s\n", i+1, label(m.Report, c))
	}
	if n := len(m.ordered); len(m.columns) > 0 {
		for _, c := range m.columns {
			n -= len(c)
		}
		if n > 0 {
			escape.Fprintf(t, "       and %d for machines of none of these programs\n", n)
		}
	}
	name := func(row *mrow) escape.Own {
		if row.programs == nil {
			return escape.Sprintf("%s", m.name(row))
		}
		return escape.Sprintf("  %s", m.name(row))
	}
	width := 0
	for i := range m.rows {
		width = max(width, utf8.RuneCountInString(string(name(&m.rows[i]))))
	}
	escape.Fprintf(t, "\nprograms:\n")
	for digit := range len(fmt.Sprint(len(m.columns))) {
		line := strings.Repeat(" ", width+1)
		for i := range m.columns {
			n := fmt.Sprintf("%*d", len(fmt.Sprint(len(m.columns))), i+1)
			line += string(n[digit])
		}
		escape.Fprintf(t, "%s\n", strings.TrimRight(line, " "))
	}
	for i := range m.rows {
		row := &m.rows[i]
		escape.Fprintf(t, "%-*s ", width, name(row))
		for c := range m.columns {
			x := m.at(row, c)
			t.WriteString(string(t.paint(x, cellTexts[x].sign)))
		}
		escape.Fprintf(t, "\n")
	}
	for i, c := range m.signs() {
		if i > 0 {
			escape.Fprintf(t, "   ")
		}
		escape.Fprintf(t, "%s %s", t.paint(c, cellTexts[c].sign), cellTexts[c].name)
	}
	escape.Fprintf(t, "\n")
}

// causes writes what costs kernels, by what to do.
func (t *text) causes() {
	most := 3
	if t.o.Verbose {
		most = 1000
	}
	last := ""
	for _, g := range t.m.causes(t.o.Verbose) {
		if g.advice != last {
			last = g.advice
			escape.Fprintf(t, "\n%s\n", last)
		}
		verdict := t.paint(g.cell(), escape.Own(g.verdict()))
		escape.Fprintf(t, "  %s: %s: %s\n", verdict, g.subject(most), g.reason())
		escape.Fprintf(t, "    %s\n", t.m.where(g.kernels, most))
		escape.Fprintf(t, "    %s\n", t.m.programs(g.programs, 2*most))
		if len(g.sources) > 0 {
			escape.Fprintf(t, "    %s\n", places(g.sources, most))
		}
		for _, guard := range g.guards {
			escape.Fprintf(t, "    guarded by %s\n", guard)
		}
	}
}

func (t *text) notes() {
	head := false
	for i := range t.m.Programs {
		p := &t.m.Programs[i]
		for i := range p.Notes {
			if !head {
				escape.Fprintf(t, "\nnotes:\n")
				head = true
			}
			escape.Fprintf(t, "  %s: %s: %s\n", p.Object, p.Name, note(&p.Notes[i]))
		}
	}
}
