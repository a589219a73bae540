// SPDX-License-Identifier: Apache-2.0

package report

import (
	_ "embed"
	"fmt"
	"io"
	"strings"
	"text/template"
	"unicode/utf8"

	"github.com/btfgen/btfgen/internal/check"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
)

// document is a report as the templates of text and Markdown show it.
type document struct {
	Summary name

	Executables []docObject // those with several objects
	Objects     []docObject // those that do not work everywhere first
	Fine        string      // how many objects without failures are not listed; "" for none

	Changes []docChanges
	Columns []name // ranges of kernels
	Others  int    // kernels in none of them
	Rows    []docRow
	Cells   []cell // that the rows have
	Rest    name   // how many programs have no row
	Advice  []docAdvice
	Notes   []name

	Compared bool // with a baseline
}

// name is text that may be from outside. Templates print it escaped.
type name string

func (n name) String() string { return escape.Text(string(n)) }

type docObject struct {
	Name, Headline name
	Remarks        []name
}

type docRow struct {
	Object, Name name // Object is empty in the object's own row
	Cells        []cell
}

// Label names the row below the object's.
func (r docRow) Label() string {
	if r.Object == "" {
		return r.Name.String()
	}
	return "  " + r.Name.String()
}

type docAdvice struct {
	Fix    name
	Causes []docCause
}

type docCause struct {
	Cell            cell
	Verdict         name
	Kernels         int
	What, Why, Code name
	Where, Programs name
	Places          name // "" for none
	Guards          []name
}

// newDocument returns the document of a report, with rules or without. Lists of things have at most so many.
func newDocument(m *matrix, o Options, rules bool, most int) *document {
	d := &document{Summary: name(summaryLine(m.Report)), Rest: name(m.rest()), Cells: m.signs(), Others: len(m.ordered)}
	for i := range m.Executables {
		x := &m.Executables[i]
		d.Executables = append(d.Executables, docObject{Name: name(x.Object), Headline: name(Headline(m.Report, x))})
	}
	for _, row := range m.objectsByNeed() {
		d.Objects = append(d.Objects, docObject{name(row.Object), name(Headline(m.Report, row)), names(m.remarks(row, rules))})
	}
	for _, c := range m.columns {
		d.Columns = append(d.Columns, name(label(m.Report, c)))
		d.Others -= len(c)
	}
	for i := range m.rows {
		row := &m.rows[i]
		out := docRow{Name: name(m.name(row))}
		if row.programs != nil {
			out.Object = name(row.object.Object)
		}
		for c := range m.columns {
			out.Cells = append(out.Cells, m.at(row, c))
		}
		d.Rows = append(d.Rows, out)
	}
	for _, list := range m.causes(o.Verbose) {
		a := docAdvice{Fix: name(list[0].advice)}
		for _, g := range list {
			a.Causes = append(a.Causes, docCause{
				g.cell(), name(g.verdict()), len(g.kernels), name(g.subject(most)), name(g.why), name(g.code),
				name(m.where(g.kernels, most)), name(m.programs(g.programs, 2*most)), name(places(g.sources, most)), names(g.guards),
			})
		}
		d.Advice = append(d.Advice, a)
	}
	return d
}

func names(list []string) (out []name) {
	for _, s := range list {
		out = append(out, name(s))
	}
	return out
}

// Width is the width of the rows' labels.
func (d *document) Width() (w int) {
	for _, r := range d.Rows {
		w = max(w, utf8.RuneCountInString(r.Label()))
	}
	return w
}

// Digits are lines with the numbers of the columns, from top to bottom.
func (d *document) Digits() (lines []string) {
	digits := len(fmt.Sprint(len(d.Columns)))
	for digit := range digits {
		line := strings.Repeat(" ", d.Width()+1)
		for i := range d.Columns {
			line += fmt.Sprintf("%*d", digits, i+1)[digit : digit+1]
		}
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return lines
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
	}).Parse(source))
	var b strings.Builder
	if err := t.Execute(&b, d); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Icon shows the cell in Markdown.
func (c cell) Icon() string { return cellTexts[c].icon }

// Text describes the cell.
func (c cell) Text() string { return cellTexts[c].name }

// Text writes the report for a terminal.
func Text(w io.Writer, r *check.Report, o Options) error {
	m, most := newMatrix(r, o.Verbose), 3
	if o.Verbose {
		most = 1000
	}
	d := newDocument(m, o, o.Verbose, most)
	for i := range d.Objects {
		if rest := m.objectsByNeed()[i:]; fine(rest[0]) && i > 0 && !o.Verbose { // like those that follow
			d.Objects, d.Fine = d.Objects[:i], words.Plural(len(rest), "object")
			break
		}
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
