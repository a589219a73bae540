// SPDX-License-Identifier: Apache-2.0

// Package report writes what package check found: for the terminal, as Markdown, JSON, JUnit XML, SARIF and HTML ([Formats]), and what
// package boot found ([Boot]). Writers get findings from groups and kernels from a view; text and Markdown are templates.
package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/text/words"
)

// Options of reports. The zero value is the short form.
type Options struct {
	Verbose bool // guards, notes, and all ranges
	Brief   bool // of the text form: no advice, and few reasons
	Quiet   bool // of the text form: only the verdict
	Color   bool // of the text form, for terminals

	Require  string                // the selectors of kernels on which objects must work, "" for none
	Required func(kernel int) bool // whether such a selector chooses a kernel; nil for all. Verdicts, causes and headlines are about these, except in JSON and verbose text

	Unmet []Unmet // why --require is not met, other than failures

	Baseline   *verdict.Baseline // of Markdown, GitHub and Summary: say what got worse and better since
	Lost       []verdict.Lost    // of these: what the baseline has and the report does not
	Findings   any               // of JSON: what the run found
	SourceRoot string            // of SARIF and GitHub: an absolute path, from which on sources are named
	Version    string            // btfgen's
	Command    string            // of HTML: what was run
}

// Unmet is a selector of required kernels with those on which nothing is loaded; none if the selector matches no kernel.
type Unmet struct {
	Selector string
	verdict.Gap
}

// Formats are the writers of reports, by the name of the format.
var Formats = map[string]func(io.Writer, *verdict.Report, Options) error{
	"text": Text, "markdown": Markdown, "json": JSON, "junit": JUnit, "sarif": SARIF, "github": GitHub, "html": HTML,
	"min-kernel": Headlines, "suggest": Suggestions, "table": Table, "badge": Badge,
}

// summary counts the programs by their worst verdict on kernels that count.
func (v *view) summary() string {
	objects := make(map[string]bool)
	for i := range v.Programs {
		objects[v.Programs[i].Object] = true
	}
	kernels, what := 0, "kernel"
	for k := range v.Kernels {
		if v.counts(k) {
			kernels++
		}
	}
	if v.required != nil {
		what = "required kernel"
	}
	n := v.Counts(v.counts)
	var parts []string
	for _, s := range []rule.Status{rule.Fails, rule.MayFail, rule.Unknown, rule.Guarded, rule.Unloaded, rule.Other, rule.OK} {
		if n[s] == 1 || n[s] > 1 && s != rule.Fails {
			parts = append(parts, fmt.Sprintf("%d %s", n[s], s))
		} else if n[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d fail", n[s]))
		}
	}
	return fmt.Sprintf("%s of %s on %s: %s", words.Plural(len(v.Programs), "program"), words.Plural(len(objects), "object"),
		words.Plural(kernels, what), strings.Join(parts, ", "))
}

// remarks says where loaders differ on an object and, if rules is set, which of its programs have to work.
func (v *view) remarks(o *verdict.ObjectRow, rules bool) (out []string) {
	for _, l := range o.Loaders {
		var alone [numCell][]int // kernels, by the verdict with this loader
		now := cells(l.Status, l.Load)
		for k, c := range now {
			if v.counts(k) && slices.ContainsFunc(o.Loaders, func(x verdict.LoaderRow) bool { return cellOf(x.Status, x.Load, k) < c }) {
				alone[c] = append(alone[c], k)
			}
		}
		for c, kernels := range alone {
			if len(kernels) > 0 {
				text := fmt.Sprintf("%s alone: %s on %s", l.Loader, cellTexts[c].name, v.where(kernels, 3))
				if slices.ContainsFunc(kernels, func(k int) bool { return o.Status[k] < l.Status[k] }) { // the verdicts of others count
					text += fmt.Sprintf(" (--loader %s says why)", l.Loader)
				}
				out = append(out, text)
			}
		}
	}
	for i := range o.Rules {
		if rules || o.Rules[i].Guess == verdict.Exclusive {
			out = append(out, ruleText(v.Report, &o.Rules[i]))
		}
	}
	return append(out, v.suggestionText(o)...)
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
