// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
)

// suggestions says with which options objects work on more kernels, and which cells change.
func (s *summary) suggestions(each bool) (out []string) {
	const few = 2
	var with, targets []string
	tails := ""
	for i := range s.Objects {
		o := &s.Objects[i]
		x := o.Suggestion
		if x == nil {
			continue
		}
		if text := changedCells(s.Report, o, &x.Row); text != "" && len(x.Options) > 0 {
			with = append(with, fmt.Sprintf("%s with %s, if its loader is like this: %s", o.Object, optionsText(x.Options), text))
		}
		if len(x.Targets) > 0 {
			targets = append(targets, o.Object)
			if x.Tails {
				tails = ", or for --tail-called if only tail calls reach them"
			}
		}
	}
	if n := len(with) - few; n > 0 && !each {
		with = append(with[:few], fmt.Sprintf("and %s: check --format suggest", words.Plural(n, "more such object")))
	}
	out = with
	if len(s.Proposals) > 0 {
		out = append(out, "Some objects are named as versions of others: check --format suggest has options for a loader that takes one of them")
	}
	if len(targets) > 0 {
		out = append(out, fmt.Sprintf("The loader seems to set what programs of %s attach to: check --format suggest names them for --target%s", short(targets), tails))
	}
	return out
}

func optionsText(options []verdict.Option) string {
	var out []string
	for _, x := range options {
		out = append(out, x.String())
	}
	return strings.Join(out, " ")
}

// changedCells names the cells that differ between two rows: "x86_64 5.10 fails → ok; 6.1 to 7.0 ? → ok".
func changedCells(r *verdict.Report, now, then *verdict.ObjectRow) string {
	var parts []string
	machine := ""
	for i := 0; i < len(r.Lines); {
		was, is := word(now.Cells[i]), word(then.Cells[i])
		from := i
		for i++; i < len(r.Lines) && r.Lines[i].Machine == r.Lines[from].Machine && word(now.Cells[i]) == was && word(then.Cells[i]) == is; {
			i++
		}
		if was == is {
			continue
		}
		var names []lineName
		for l := from; l < i; l++ {
			names = append(names, lineName{r.Lines[l].Name, r.Lines[l].Machine != verdict.Unknown, l > from})
		}
		name := strings.Join(joined(names), ", ")
		if r.Lines[from].Machine != machine {
			machine = r.Lines[from].Machine
			name = machine + " " + name
		}
		parts = append(parts, fmt.Sprintf("%s %s → %s", name, was, is))
	}
	return strings.Join(parts, "; ")
}

// Suggestions writes what is suggested as YAML for btfgen.yaml, with the cells that it changes.
func Suggestions(w io.Writer, r *verdict.Report, _ Options) error {
	comments, lines, targets, tails := suggested(r)
	b := bufio.NewWriter(w)
	comment := func(indent, text string) { escape.Fprintf(b, "%s# %s\n", indent, text) }
	for _, text := range comments {
		comment("", text)
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
	if len(targets) > 0 {
		comment("  ", "Loaders seem to set what these programs attach to. Write the names of functions, tracepoints or hooks:")
		comment("  ", "target:")
		for _, t := range targets {
			comment("  ", "  - "+strconv.Quote(t+"=NAME"))
		}
		if len(tails) > 0 {
			comment("  ", "If only tail calls reach some of these programs, they are loaded and not attached. Name them here instead:")
			comment("  ", "tail-called:")
			for _, t := range tails {
				comment("  ", "  - "+strconv.Quote(t))
			}
		}
	}
	return b.Flush()
}

// suggested returns the options that change cells, as values by name and with a comment on the change. targets are the programs whose
// targets loaders seem to set; tail calls may reach those in tails.
func suggested(r *verdict.Report) (comments []string, values map[string][]string, targets, tails []string) {
	values = make(map[string][]string)
	add := func(name, what string, options []verdict.Option, now, then *verdict.ObjectRow) {
		text := changedCells(r, now, then)
		if text == "" || len(options) == 0 {
			return
		}
		comments = append(comments, name+what+"with these lines: "+text)
		for _, x := range options {
			values[x.Name] = append(values[x.Name], x.Value)
		}
	}
	for i := range r.Objects {
		if s := r.Objects[i].Suggestion; s != nil {
			add(r.Objects[i].Object, " ", s.Options, &r.Objects[i], &s.Row)
			targets = append(targets, s.Targets...)
			if s.Tails {
				tails = append(tails, s.Targets...)
			}
		}
	}
	for i := range r.Proposals {
		p := &r.Proposals[i]
		what := " has a version in its name; "
		if p.Row.Variants != nil {
			what = " look like variants, where the loader takes one; "
		}
		add(p.Row.Object, what, p.Options, &p.Now, &p.Row)
	}
	return comments, values, sorted(targets), sorted(tails)
}
