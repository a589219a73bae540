// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
)

// suggestionText says with which options an object works on more kernels.
func (v *view) suggestionText(o *verdict.ObjectRow) (out []string) {
	if s := o.Suggestion; s != nil && len(s.Options) > 0 {
		var options []string
		for _, x := range s.Options {
			options = append(options, x.String())
		}
		out = append(out, fmt.Sprintf("if its loader is like this (%s): %s", strings.Join(options, " "), v.headline(&s.Row)))
	}
	if targets := loaderTargets(v.Report, o); len(targets) > 0 {
		out = append(out, fmt.Sprintf("the loader seems to set what these attach to; --target names it: %s", some(targets)))
	}
	return out
}

// loaderTargets names the programs of an object whose attach targets the loader seems to set.
func loaderTargets(r *verdict.Report, o *verdict.ObjectRow) (names []string) {
	if o.Suggestion != nil {
		names = append(names, o.Suggestion.Targets...)
	}
	for _, p := range o.Programs {
		pr := &r.Programs[p]
		if !slices.Contains(names, pr.Name) && slices.ContainsFunc(pr.Findings, func(f verdict.KernelFinding) bool { return nowhere(r, o, &f.Finding) }) {
			names = append(names, pr.Name)
		}
	}
	return names
}

// Suggestions writes what is suggested as YAML for btfgen.yaml, with the headlines that follow.
func Suggestions(w io.Writer, r *verdict.Report, _ Options) error {
	b := bufio.NewWriter(w)
	comment := func(indent, text string) { escape.Fprintf(b, "%s# %s\n", indent, text) }
	lines := make(map[string][]string) // by option
	var targets []string
	for i := range r.Objects {
		o := &r.Objects[i]
		targets = append(targets, loaderTargets(r, o)...)
		s := o.Suggestion
		if s == nil {
			continue
		}
		if len(s.Options) > 0 {
			comment("", o.Object+" now: "+Headline(r, o))
			comment("", o.Object+" with these lines: "+Headline(r, &s.Row))
		}
		for _, x := range s.Options {
			lines[x.Name] = append(lines[x.Name], x.Value)
		}
	}
	for i := range r.Proposals {
		p := &r.Proposals[i]
		if p.Row.Variants == nil {
			comment("", p.Row.Object+" has a version in its name; with these lines: "+Headline(r, &p.Row))
		} else {
			comment("", p.Row.Object+" look like variants, where the loader takes one; with these lines: "+Headline(r, &p.Row))
		}
		for _, x := range p.Options {
			lines[x.Name] = append(lines[x.Name], x.Value)
		}
	}
	if len(lines)+len(targets) == 0 {
		comment("", "Nothing to suggest for "+words.Plural(len(r.Objects), "object")+".")
		return b.Flush()
	}
	if len(lines) > 0 {
		escape.Fprintf(b, "check:\n")
	}
	for _, option := range []string{"optional", "one-of", "when", "loader-map"} {
		for i, value := range lines[option] {
			if i == 0 {
				escape.Fprintf(b, "  %s:\n", option)
			}
			escape.Fprintf(b, "    - %s\n", strconv.Quote(value))
		}
	}
	slices.Sort(targets)
	if targets = slices.Compact(targets); len(targets) > 0 {
		comment("  ", "Loaders seem to set what these programs attach to. Write the names of functions, tracepoints or hooks:")
		comment("  ", "target:")
		for _, t := range targets {
			comment("  ", "  - "+strconv.Quote(t+"=NAME"))
		}
	}
	return b.Flush()
}
