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

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
)

// document is a report as the templates of text and Markdown show it. They escape what may be from outside.
type document struct {
	*matrix
	Most    int // names in a list
	Verbose bool

	Shown    []*verdict.ObjectRow // those that do not work everywhere first
	Fine     string               // how many objects without failures are not shown; "" for none
	Changes  []docChanges
	Compared bool // with a baseline
	Lost     []verdict.Lost
	Verdict  string // of the kernels that are required, "" without any
}

// newDocument returns the document of a report. Its lists have at most so many names, or all with verbose.
func newDocument(r *verdict.Report, most int, verbose bool) *document {
	if verbose {
		most = 1000
	}
	d := &document{matrix: newMatrix(r, verbose), Most: most, Verbose: verbose}
	d.Shown = d.objectsByNeed()
	return d
}

// require limits the document to the kernels that the options require.
func (d *document) require(o Options) {
	d.of(o)
	d.Shown = d.objectsByNeed()
	if o.Require != "" {
		d.Verdict = newScreen(d.Report, o).verdict(false)
	}
}

// Unmet is the number of kernels that no object is for.
func (d *document) Unmet() (n int) {
	for k := range d.Kernels {
		if !slices.ContainsFunc(d.Objects, func(o verdict.ObjectRow) bool { return o.Status[k] != rule.Other }) {
			n++
		}
	}
	return n
}

// Others is the number of kernels that no program is for.
func (d *document) Others() int {
	n := len(d.ordered)
	for _, c := range d.Columns {
		n -= len(c)
	}
	return n
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

// Causes returns what is wrong, by what is done about it.
func (d *document) Causes() [][]group { return d.causes(d.Verbose) }

// Notes returns the notes of all programs, with verbose.
func (d *document) Notes() (all []string) {
	for i := range d.Programs {
		p := &d.Programs[i]
		for j := range p.Notes {
			all = append(all, p.Object+": "+p.Name+": "+note(&p.Notes[j]))
		}
	}
	return all
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
		"inc":      func(i int) int { return i + 1 },
		"text":     escape.Text,
		"md":       escape.Markdown,
		"code":     escape.Code,
		"paint":    paint,
		"sign":     func(c cell) string { return paint(c, string(cellTexts[c].sign)) },
		"summary":  d.summary,
		"plural":   words.Plural,
		"headline": d.headline,
		"remarks":  d.remarks,
		"label":    func(kernels []int) string { return label(d.Report, kernels) },
		"where":    func(g group) string { return d.where(g.Kernels, d.Most) },
		"programs": func(g group) string { return d.programs(g.programs, 2*d.Most) },
		"places":   func(g group) string { return places(g.sources, d.Most) },
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

// longText writes the whole report for a terminal.
func longText(w io.Writer, r *verdict.Report, o Options) error {
	d := newDocument(r, 3, o.Verbose)
	if !o.Verbose {
		d.require(o)
	}
	for i, row := range d.Shown {
		if d.worksThroughout(row) && i > 0 && !o.Verbose { // like those that follow
			d.Shown, d.Fine = d.Shown[:i], words.Plural(len(d.Shown)-i, "object")
			break
		}
	}
	return d.write(w, textSource, o.Color)
}
