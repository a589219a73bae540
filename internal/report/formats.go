// SPDX-License-Identifier: Apache-2.0

// Package report writes what package check found: for the terminal, as Markdown, JSON, JUnit XML, SARIF and HTML ([Formats]), and what
// package boot found ([Boot]). Each format is a small function over the rows, cells and causes of a [verdict.Report], and derives nothing
// from verdicts. A sentence is about one cell or one cause.
package report

import (
	"io"
	"strings"

	"github.com/btfgen/btfgen/internal/check/verdict"
)

// Options of reports. The zero value is the short form.
type Options struct {
	Verbose bool // guards, notes, and all ranges
	Brief   bool // text: no advice, and few reasons
	Quiet   bool // text: only the verdict
	Color   bool // text: colors for terminals

	Require  string                // the selectors of kernels on which objects must work, "" for none
	Required func(kernel int) bool // whether such a selector chooses a kernel; nil for all. The matrix and causes are about these, except in JSON and verbose text

	Unmet []Unmet // why --require is not met, other than failures

	Baseline   *verdict.Baseline // text, Markdown, GitHub and Summary: say what got worse and better since
	Old        string            // text: name of the baseline
	Lost       []verdict.Lost    // text, Markdown, GitHub and Summary: what the baseline has and the report does not
	Findings   any               // JSON: what the run found
	SourceRoot string            // SARIF and GitHub: absolute path that names of sources are relative to
	Width      int               // text: columns of the terminal, into which the matrix fits; 0 for any
	Version    string            // btfgen's
	Command    string            // HTML: command line of the run
}

// Unmet is a selector of required kernels with those on which nothing is loaded; none if the selector matches no kernel.
type Unmet struct {
	Selector string
	verdict.Gap
}

// Formats are the writers of reports, by the name of the format.
var Formats = map[string]func(io.Writer, *verdict.Report, Options) error{
	"text": Text, "markdown": Markdown, "json": JSON, "junit": JUnit, "sarif": SARIF, "github": GitHub, "html": HTML,
	"summary": Summary, "min-kernel": Minima, "suggest": Suggestions, "table": Table, "badge": Badge,
}

// restrict returns the report on the kernels that are required, or all of it.
func (o Options) restrict(r *verdict.Report) *verdict.Report {
	if o.Required == nil {
		return r
	}
	return r.Only(o.Required)
}

// ruleText says what a rule says.
func ruleText(r *verdict.Report, rule *verdict.Rule) string {
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
	case verdict.Optional:
		s = "works without " + strings.Join(alternatives, ", ")
	case verdict.OneOf:
		s = "one of these has to work: " + strings.Join(alternatives, " | ")
	case verdict.OnlyWhen:
		s = strings.TrimSpace(strings.Join(alternatives, ", ") + " only on " + rule.When)
	}
	if guess := guessText(rule); guess != "" {
		s += " (a guess: " + guess + ")"
	}
	return s
}
