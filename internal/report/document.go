// SPDX-License-Identifier: Apache-2.0

package report

import (
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"
	"unicode/utf8"

	"github.com/btfgen/btfgen/internal/check"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
)

// document is a report as the templates of text and Markdown show it.
type document struct {
	*matrix
	most  int  // of things in a list
	rules bool // which programs have to work

	Objects []*check.ObjectRow // those that do not work everywhere first
	Fine    string             // how many objects without failures are not listed; "" for none
	Changes []docChanges
	Causes  [][]group // by what to do
	Notes   []name

	Compared bool // with a baseline
}

// name is text that may be from outside. Templates print it escaped.
type name string

func (n name) String() string { return escape.Text(string(n)) }

func names(list []string) (out []name) {
	for _, s := range list {
		out = append(out, name(s))
	}
	return out
}

func newDocument(r *check.Report, verbose, rules bool, most int) *document {
	if verbose {
		most = 1000
	}
	d := &document{matrix: newMatrix(r, verbose), most: most, rules: rules}
	d.Objects = d.objectsByNeed()
	for _, g := range d.causes(verbose) {
		if n := len(d.Causes); n > 0 && d.Causes[n-1][0].advice == g.advice {
			d.Causes[n-1] = append(d.Causes[n-1], g)
		} else {
			d.Causes = append(d.Causes, []group{g})
		}
	}
	return d
}

// Text writes the report for a terminal.
func Text(w io.Writer, r *check.Report, o Options) error {
	d := newDocument(r, o.Verbose, o.Verbose, 3)
	if i := slices.IndexFunc(d.Objects, fine); i >= 0 && len(d.Objects) > 1 && !o.Verbose {
		i = max(i, 1) // one shows what the others are like
		d.Fine, d.Objects = words.Plural(len(d.Objects)-i, "object"), d.Objects[:i]
	}
	if o.Verbose {
		for i := range r.Programs {
			p := &r.Programs[i]
			for j := range p.Notes {
				d.Notes = append(d.Notes, name(p.Object+": "+p.Name+": "+note(&p.Notes[j])))
			}
		}
	}
	return d.write(w, textSource, o.Color)
}

// Markdown writes the report for a pull request.
func Markdown(w io.Writer, r *check.Report, o Options) error {
	d := newDocument(r, o.Verbose, false, 5)
	if o.Baseline != nil {
		d.Changes, d.Compared = d.changes(o.Baseline), true
	}
	return d.write(w, markdownSource, false)
}

var (
	//go:embed text.tmpl
	textSource string
	//go:embed markdown.tmpl
	markdownSource string
)

// write executes a template.
func (d *document) write(w io.Writer, source string, color bool) error {
	paint := func(c cell, s string) string {
		if code := cellTexts[c].color; color && code != "" {
			return "\x1b[" + code + "m" + s + "\x1b[0m"
		}
		return s
	}
	t := template.Must(template.New("").Funcs(template.FuncMap{
		"inc":   func(i int) int { return i + 1 },
		"md":    func(n name) string { return escape.Markdown(string(n)) },
		"code":  func(n any) string { return escape.Code(fmt.Sprint(n)) },
		"paint": func(c cell, n name) string { return paint(c, n.String()) },
		"sign":  func(c cell) string { return paint(c, string(cellTexts[c].sign)) },

		"object":   func(o *check.ObjectRow) name { return name(o.Object) },
		"headline": func(o *check.ObjectRow) name { return name(Headline(d.Report, o)) },
		"remarks":  func(o *check.ObjectRow) []name { return names(d.remarks(o, d.rules)) },
		"row":      func(r mrow) name { return name(d.name(&r)) },
		"what":     func(g group) name { return name(g.subject(d.most)) },
		"where":    func(g group) name { return name(d.where(g.kernels, d.most)) },
		"programs": func(g group) name { return name(d.programs(g.programs, 2*d.most)) },
		"places":   func(g group) name { return name(places(g.sources, d.most)) },
	}).Parse(source))
	var b strings.Builder
	if err := t.Execute(&b, d); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Summary is the report in a line.
func (d *document) Summary() name { return name(summaryLine(d.Report)) }

// Rest says how many programs have no row.
func (d *document) Rest() name { return name(d.rest()) }

// Rows are the rows of the matrix.
func (d *document) Rows() []mrow { return d.rows }

// Columns are the ranges of kernels of the matrix.
func (d *document) Columns() (out []name) {
	for _, c := range d.columns {
		out = append(out, name(label(d.Report, c)))
	}
	return out
}

// Others is the number of kernels that no column has.
func (d *document) Others() int {
	n := len(d.ordered)
	for _, c := range d.columns {
		n -= len(c)
	}
	return n
}

// Cells returns the cells of a row by column.
func (d *document) Cells(row mrow) (out []cell) {
	for _, c := range d.columns {
		out = append(out, row.cells[c[0]])
	}
	return out
}

// Signs returns the cells that rows have, ascending.
func (d *document) Signs() []cell {
	var all []cell
	for _, r := range d.rows {
		all = append(all, d.Cells(r)...)
	}
	return sorted(all)
}

// Label names a row on terminals, programs below their object.
func (d *document) Label(row mrow) string {
	text := name(d.name(&row)).String()
	if row.programs != nil {
		return "  " + text
	}
	return text
}

// Width is the width of the rows' labels.
func (d *document) Width() (w int) {
	for _, r := range d.rows {
		w = max(w, utf8.RuneCountInString(d.Label(r)))
	}
	return w
}

// Digits are lines with the numbers of the columns, from top to bottom.
func (d *document) Digits() (lines []string) {
	digits := len(fmt.Sprint(len(d.columns)))
	for digit := range digits {
		line := strings.Repeat(" ", d.Width()+1)
		for i := range d.columns {
			line += fmt.Sprintf("%*d", digits, i+1)[digit : digit+1]
		}
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return lines
}

// Object is the object of a row of programs, "" for its own row.
func (r mrow) Object() name {
	if r.programs == nil {
		return ""
	}
	return name(r.object.Object)
}

// Icon shows the cell in Markdown.
func (c cell) Icon() string { return cellTexts[c].icon }

// Text describes the cell.
func (c cell) Text() string { return cellTexts[c].name }

// The parts of a group that do not depend on the document.

func (g group) Fix() name      { return name(g.advice) }
func (g group) Cell() cell     { return g.cell() }
func (g group) Verdict() name  { return name(g.verdict()) }
func (g group) Kernels() int   { return len(g.kernels) }
func (g group) Why() name      { return name(g.why) }
func (g group) Code() name     { return name(g.code) }
func (g group) Guards() []name { return names(g.guards) }
