// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
)

// summary counts objects by what they do on the kernels of a report.
type summary struct {
	*verdict.Report                 // covers only the required kernels
	o                               Options
	full                            *verdict.Report
	works, fails, uncertain, unused int
}

// summarize counts the objects of a report on the kernels that are required.
func summarize(r *verdict.Report, o Options) *summary {
	s := &summary{Report: o.restrict(r), o: o, full: r}
	for i := range s.Objects {
		switch c := s.Objects[i].Sum(); {
		case c.Judged() == 0:
			s.unused++
		case c.Fails > 0:
			s.fails++
		case c.Uncertain > 0:
			s.uncertain++
		default:
			s.works++
		}
	}
	return s
}

func (s *summary) total() int { return s.works + s.fails + s.uncertain }

// word is the verdict in a word, and the cell whose colour it has.
func (s *summary) word() (string, cell) {
	switch {
	case s.fails > 0 || s.total() == 0 || len(s.o.Unmet) > 0:
		return "FAIL", cellFails
	case s.uncertain > 0:
		return "UNCERTAIN", cellMayFail
	}
	return "PASS", cellOK
}

// verdict says how many objects work and, if some have to, whether that is enough.
func (s *summary) verdict(color bool) string {
	text := escape.Text(s.counted())
	if s.o.Require == "" {
		return text
	}
	word, c := s.word()
	return text + "   " + c.paint(word, color)
}

// counted says how many objects work.
func (s *summary) counted() string {
	kernels, total := words.Plural(len(s.Kernels), "kernel"), s.total()
	switch {
	case s.o.Require != "" && len(s.Kernels) == 0:
		return fmt.Sprintf("Must work (--require %s): no kernel matches", s.o.Require)
	case s.o.Require != "" && total == 0:
		return fmt.Sprintf("Must work (--require %s): no object is loaded on any of %s", s.o.Require, kernels)
	case s.o.Require != "":
		return fmt.Sprintf("Must work (--require %s): %d of %s on %s", s.o.Require, s.works, words.Plural(total, "object"), kernels) + s.doubt() + s.others()
	case total == 0:
		return "No object is loaded on any of " + kernels + strings.ReplaceAll(s.others(), " more ", " ")
	}
	text := fmt.Sprintf("%s on %s: ", words.Plural(total, "object"), kernels)
	switch {
	case total > 1:
		they := "they are"
		if s.works == 1 {
			they = "it is"
		}
		text += fmt.Sprintf("%d %s on all that %s for", s.works, verb(s.works, "work"), they)
		if s.fails > 0 {
			text += fmt.Sprintf(", %d %s on some", s.fails, verb(s.fails, "fail"))
		}
		text += s.doubt()
	case s.fails > 0:
		text += "it fails on some"
	case s.works > 0:
		text += "it works on all that it is for"
	default:
		text += "whether it works on all is uncertain"
	}
	return text + s.others()
}

// verb is a verb for a number of subjects.
func verb(n int, plural string) string {
	if n == 1 {
		return plural + "s"
	}
	return plural
}

// doubt says how many objects are uncertain.
func (s *summary) doubt() string {
	if s.uncertain == 0 {
		return ""
	}
	return fmt.Sprintf(", %d uncertain", s.uncertain)
}

// others says how many objects do not count, and why.
func (s *summary) others() string {
	unloaded, chosen := 0, 0
	for i := range s.Objects {
		switch {
		case !s.Objects[i].Sum().NeverLoaded():
		case slices.ContainsFunc(s.Variants, func(v verdict.ObjectRow) bool {
			return slices.ContainsFunc(v.Variants, func(a []int) bool { return slices.Contains(a, i) })
		}):
			chosen++ // another one is loaded, as the row of the variants shows
		default:
			unloaded++
		}
	}
	text := ""
	if n := s.unused - unloaded - chosen; n > 0 {
		text += fmt.Sprintf("; %d more for machines without a kernel here", n)
	}
	if unloaded > 0 {
		text += fmt.Sprintf("; %d more not loaded here", unloaded)
	}
	return text
}

// unloaded returns sentences about required kernels on which no object is loaded, and about selectors that match no kernel. It leaves out
// those that the verdict has.
func (s *summary) unloaded() (out []string) {
	for _, u := range s.o.Unmet {
		text := "No kernel matches --require " + u.Selector
		switch {
		case s.total() == 0 && u.Row == nil:
			continue
		case len(u.Kernels) > 0 && u.Row == nil:
			text = "No object is loaded on " + whereOn(s.full, u.Kernels)
		case len(u.Kernels) > 0:
			text = fmt.Sprintf("%s: none is loaded on %s", u.Row.Object, whereOn(s.full, u.Kernels))
		}
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}

// otherLoader says what a loader decides otherwise whose verdicts do not count: in a line for each loader, or for each object.
func (s *summary) otherLoader(each bool) (out []string) {
	const few = 3
	all := make(map[rule.Loader][]string)
	var loaders []rule.Loader
	for i := range s.Objects {
		o := &s.Objects[i]
		for _, l := range o.Loaders {
			text := s.differences(o, l.Status)
			if l.Loader == o.Loader || text == "" {
				continue
			}
			if all[l.Loader] == nil {
				loaders = append(loaders, l.Loader)
			}
			all[l.Loader] = append(all[l.Loader], o.Object+" "+text)
		}
	}
	for _, l := range sorted(loaders) {
		names := all[l]
		if each {
			for _, n := range names {
				out = append(out, fmt.Sprintf("With %s: %s", l, n))
			}
			continue
		}
		text := strings.Join(names, "; ")
		if len(names) > few {
			text = fmt.Sprintf("%s are different, such as %s", words.Plural(len(names), "object"), names[0])
		}
		out = append(out, fmt.Sprintf("With %s (--loader %s): %s", l, l, text))
	}
	return out
}

// remarks are what else there is to know of all objects: see otherLoader, unjudged and suggestions.
func (s *summary) remarks(all bool) []string {
	out := s.otherLoader(all)
	if text := unjudged(s.Programs); text != "" {
		out = append(out, text)
	}
	return append(out, s.suggestions(all)...)
}

// unjudged counts the properties of working programs that were not judged: "ok, not judged: bounds of 3 computed offsets in 2 programs [unjudged-bounds]".
func unjudged(programs []verdict.ProgramRow) string {
	var offsets, bounds, work int
	for i := range programs {
		p := &programs[i]
		if !slices.Contains(p.Status, rule.OK) && !slices.Contains(p.Status, rule.Guarded) {
			continue
		}
		for j := range p.Notes {
			switch n := &p.Notes[j]; n.Code {
			case rule.UnjudgedBounds:
				offsets += int(n.Count)
				bounds++
			case rule.UnjudgedWork:
				work++
			}
		}
	}
	var parts []string
	if bounds > 0 {
		parts = append(parts, fmt.Sprintf("bounds of %s in %s [%s]", words.Plural(offsets, "computed offset"), words.Plural(bounds, "program"), rule.UnjudgedBounds))
	}
	if work > 0 {
		parts = append(parts, fmt.Sprintf("how many instructions verifiers process of %s [%s]", words.Plural(work, "program"), rule.UnjudgedWork))
	}
	if parts == nil {
		return ""
	}
	return "ok, not judged: " + strings.Join(parts, "; ")
}

// differences names the cells of other verdicts on an object that differ from its own: "x86_64 5.10 fails".
func (s *summary) differences(o *verdict.ObjectRow, status []rule.Status) string {
	cells := s.CellsOf(status)
	other := verdict.ObjectRow{Cells: cells, Status: status}
	var parts []string
	for i := 0; i < len(s.Lines); {
		machine := s.Lines[i].Machine
		var lines []int
		for ; i < len(s.Lines) && s.Lines[i].Machine == machine; i++ {
			if word(cells[i]) != word(o.Cells[i]) {
				lines = append(lines, i)
			}
		}
		if lines != nil {
			parts = append(parts, machine+" "+strings.Join(cellRuns(s.Report, &other, lines), ", "))
		}
	}
	if sum := other.Sum(); len(parts) > 1 && sum.Fails == sum.Judged() {
		return "fails on every kernel"
	}
	return strings.Join(parts, "; ")
}

// mostSummary is how many items a summary has, with the line that says how many more there are.
const mostSummary = 7

// Summary writes Markdown of at most ten lines: the verdict, and what got worse than in the baseline or, without one, what costs most.
func Summary(w io.Writer, r *verdict.Report, o Options) error {
	s := summarize(r, o)
	var lines []string
	if o.Baseline == nil {
		lines = s.unloaded()
		for i := range s.Causes {
			lines = append(lines, causeLine(s.Report, &s.Causes[i], mostNames))
		}
	} else {
		lines = lostTexts(r, o.Lost)
		for _, part := range changes(r, o.Baseline) {
			lines = append(lines, part.texts()...)
		}
		if len(lines) == 0 {
			lines = append(lines, "Nothing is worse or better than the baseline")
		}
	}
	if n := len(lines) - mostSummary; n > 0 {
		lines = append(lines[:mostSummary-1], fmt.Sprintf("and %d more", n+1))
	}
	var b strings.Builder
	b.WriteString("### " + escape.Markdown(s.verdict(false)) + "\n\n")
	for _, text := range lines {
		b.WriteString("- " + escape.Markdown(text) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
