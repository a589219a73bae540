// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// terminal is how many lines the text of a report may have, and small that of one with few objects, as whoever writes them reads more.
// A longer one is a screen, and -v has the rest.
const (
	terminal = 24
	few      = 3
	small    = 48
)

// mostNames is how many things of one kind a line names.
const mostNames = 4

// mostReasons is how many reasons for failures a screen has, briefReasons how many a brief one, and mostDoubts how many doubts.
const (
	mostReasons  = 6
	briefReasons = 3
	mostDoubts   = 2
)

// screen sums a report up: what to do comes first.
type screen struct {
	*view            // whose counts are what has to work
	required string  // the selectors that say so, "" for none
	unmet    []Unmet // of these selectors

	doubts func() ([]int, []reason) // uncertain, once
}

// verdict says how many objects work and, if some have to, whether that is enough.
func (s *screen) verdict(color bool) string {
	text := s.counted()
	if s.required == "" {
		return escape.Text(text)
	}
	word, c := s.word()
	if color {
		word = "\x1b[" + cellTexts[c].color + "m" + word + "\x1b[0m"
	}
	return string(escape.Sprintf("%s   ", text)) + word
}

// item is a line of the screen, and what to do about it, "" for nothing. Some only say how many others there are.
type item struct {
	text, advice string
	others       bool
}

// items are what blocks most, then what is uncertain, with so many reasons of each.
func (s *screen) items(reasons, doubts int) (out []item) {
	add := func(l []reason, most int, before, more string, advice func(*reason) string) {
		for i := range l[:min(len(l), most)] {
			out = append(out, item{text: before + s.text(&l[i]), advice: advice(&l[i])})
		}
		if n := len(l) - most; n > 0 {
			out = append(out, item{text: "and " + words.Plural(n, more), others: true})
		}
	}
	for _, text := range s.unloaded() {
		out = append(out, item{text: text})
	}
	add(s.blockers(), reasons, "", "other reason", func(r *reason) string { return cmp.Or(s.loaderMap(r), r.advice) })
	loader, other := s.doubts()
	if len(loader) > 0 {
		out = append(out, item{text: fmt.Sprintf("The loader decides: %s to what it sets (%s)", words.Plural(len(loader), "object")+attaches(len(loader)), short(s.names(loader))),
			advice: "btfgen check --suggest names the programs for --target"})
	}
	add(other, doubts, "Uncertain: ", "other doubt", func(*reason) string { return "" })
	return out
}

// unloaded says where nothing is loaded that has to work, and which selectors match no kernel, unless the verdict does.
func (s *screen) unloaded() (out []string) {
	_, _, total := s.tally("")
	for _, u := range s.unmet {
		text := "No kernel matches --require " + u.Selector
		switch {
		case total == 0 && u.Row == nil:
			continue
		case len(u.Kernels) > 0 && u.Row == nil:
			text = "No object is loaded " + s.where(u.Kernels)
		case len(u.Kernels) > 0:
			text = fmt.Sprintf("%s: none is loaded %s", u.Row.Object, s.where(u.Kernels))
		}
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}

// write writes the verdict, what blocks most, and where details are. A brief one has no advice, and a quiet one only the verdict.
func (s *screen) write(w io.Writer, o Options) error {
	var b strings.Builder
	line := func(text string) { b.WriteString(text + "\n") }
	if line(s.verdict(o.Color)); o.Quiet {
		_, err := io.WriteString(w, b.String())
		return err
	}
	reasons, doubts := mostReasons, mostDoubts
	if o.Brief {
		reasons, doubts = briefReasons, 0
	}
	n := 0
	said := map[string]bool{"": true}
	for _, x := range s.items(reasons, doubts) {
		if x.others {
			line("   " + escape.Text(x.text))
			continue
		}
		n++
		line(fmt.Sprintf("%d. %s", n, escape.Text(x.text)))
		if !said[x.advice] && !o.Brief {
			line("   " + escape.Text(x.advice))
		}
		said[x.advice] = true
	}
	if !o.Brief {
		for _, text := range s.notes() {
			line(escape.Text(text))
		}
	}
	line("Details: -v, or --format html -o report.html")
	_, err := io.WriteString(w, b.String())
	return err
}

// notes say what else there is to know.
func (s *screen) notes() (out []string) {
	suggests := func(o *verdict.ObjectRow) bool { return o.Suggestion != nil && len(o.Suggestion.Options) > 0 }
	switch {
	case len(s.Proposals) > 0:
		out = append(out, "Some objects are named as versions of others: btfgen check --suggest has options for a loader that takes one of them")
	case slices.ContainsFunc(s.Objects, func(o verdict.ObjectRow) bool { return suggests(&o) }):
		out = append(out, "btfgen check --suggest describes loaders with which more objects work")
	}
	if n := len(s.Warnings()); n > 0 {
		out = append(out, fmt.Sprintf("%s: programs read or return something else on some kernels", words.Plural(n, "warning")))
	}
	if since := s.since(); since != "" {
		out = append(out, since)
	}
	return out
}

func attaches(n int) string {
	if n == 1 {
		return " attaches"
	}
	return " attach"
}

// newScreen returns the screen of a report with the options.
func newScreen(r *verdict.Report, o Options) *screen {
	s := &screen{view: newView(r).of(o), required: o.Require, unmet: o.Unmet}
	s.doubts = sync.OnceValues(s.uncertain)
	return s
}

// tally counts the objects that are for a kernel that counts, those that work on all of these, and those that fail on some, with a
// loader or, if that is "", with the worst.
func (s *screen) tally(l rule.Loader) (works, fails, total int) {
	for i := range s.Objects {
		worst, met := s.worst(s.Objects[i].StatusWith(l))
		switch {
		case !met:
			continue
		case worst <= rule.Guarded:
			works++
		case worst == rule.Fails:
			fails++
		}
		total++
	}
	return works, fails, total
}

// word is the verdict in a word, and the cell whose colour it has.
func (s *screen) word() (string, cell) {
	switch works, fails, total := s.tally(""); {
	case fails > 0 || total == 0 || len(s.unmet) > 0:
		return "FAIL", cellFails
	case works < total:
		return "UNCERTAIN", cellMayFail
	}
	return "PASS", cellOK
}

// counted says how many objects work wherever it counts.
func (s *screen) counted() string {
	works, fails, total := s.tally("")
	n := 0
	for k := range s.Kernels {
		if s.counts(k) {
			n++
		}
	}
	kernels := words.Plural(n, "kernel")
	switch {
	case s.required != "" && n == 0:
		return fmt.Sprintf("Must work (--require %s): no kernel matches", s.required)
	case s.required != "" && total == 0:
		return fmt.Sprintf("Must work (--require %s): no object is loaded on any of %s", s.required, kernels)
	case s.required != "":
		return fmt.Sprintf("Must work (--require %s): %s on %s", s.required, s.working(works, " of "+words.Plural(total, "object")), kernels) + s.open(total-works-fails)
	case total == 0:
		return "No object is loaded on any of " + kernels
	}
	text := fmt.Sprintf("%s on %s: ", words.Plural(total, "object"), kernels)
	switch working := s.working(works, ""); {
	case total > 1 || working != fmt.Sprint(works):
		text += working + " on all that they are for"
		if fails > 0 {
			text += fmt.Sprintf(", %d not on some", fails)
		}
		return text + s.open(total-works-fails)
	case fails > 0:
		return text + "it does not work on some"
	case works > 0:
		return text + "it works on all that it is for"
	}
	return text + "whether it works on all is" + strings.TrimPrefix(s.open(1), ", 1")
}

// open says how many objects of some are for the loader to decide, and how many are uncertain: ", 4 for the loader to decide, 1 uncertain".
func (s *screen) open(n int) (text string) {
	decided, _ := s.doubts()
	loader := 0
	for _, i := range decided {
		if worst, _ := s.worst(s.Objects[i].Status); worst != rule.Fails {
			loader++
		}
	}
	if loader > 0 {
		text = fmt.Sprintf(", %d for the loader to decide", loader)
	}
	if n -= loader; n > 0 {
		text += fmt.Sprintf(", %d uncertain", n)
	}
	return text
}

// working says how many objects work, for each loader where that differs: "14 of 21 objects with libbpf and 15 with ebpf-go".
func (s *screen) working(works int, of string) string {
	var loaders []rule.Loader
	for i := range s.Objects {
		for _, l := range s.Objects[i].Loaders {
			loaders = append(loaders, l.Loader)
		}
	}
	loaders = sorted(loaders)
	slices.Reverse(loaders) // libbpf first, as in headlines
	var counts []string
	differ := false
	for _, l := range loaders {
		n, _, _ := s.tally(l)
		counts, differ = append(counts, fmt.Sprint(n)), differ || n != works
	}
	if !differ {
		return fmt.Sprint(works) + of
	}
	return perLoader(loaders, counts, of)
}

// worst returns the worst of an object's verdicts on kernels that count, and whether it is for any.
func (s *screen) worst(status []rule.Status) (worst rule.Status, met bool) {
	for k, v := range status {
		if v.Judged() && s.counts(k) {
			worst, met = max(worst, v), true
		}
	}
	return worst, met
}

// since says from which releases on how many objects work, "" without any.
func (s *screen) since() string {
	count := make(map[string]int)
	var releases []string
	for i := range s.Objects {
		h := &s.Objects[i].Headline
		if h.Since == "" || h.Works == 0 || h.Until != "" {
			continue
		}
		if count[h.Since]++; count[h.Since] == 1 {
			releases = append(releases, h.Since)
		}
	}
	slices.SortFunc(releases, kernel.CompareVersions)
	var parts []string
	for _, r := range releases {
		parts = append(parts, fmt.Sprintf("%s (%s)", r, words.Plural(count[r], "object")))
	}
	if len(parts) == 0 {
		return ""
	}
	return "First releases: " + strings.Join(parts, ", ")
}

// Text writes the report for a terminal: all of it if it is short or verbose, else a screen, and always a screen if it is brief or quiet.
func Text(w io.Writer, r *verdict.Report, o Options) error {
	if o.Quiet || o.Brief {
		return newScreen(r, o).write(w, o)
	}
	var b bytes.Buffer
	if o.Require != "" {
		b.WriteString(newScreen(r, o).verdict(o.Color) + "\n")
	}
	if err := longText(&b, r, o); err != nil {
		return err
	}
	lines := bytes.Count(b.Bytes(), []byte("\n"))
	if o.Verbose || lines <= terminal || lines <= small && len(r.Objects) <= few {
		_, err := b.WriteTo(w)
		return err
	}
	return newScreen(r, o).write(w, o)
}

// mostSummary is how many items a summary has, with the line that says how many more there are.
const mostSummary = 7

// Summary writes Markdown of at most ten lines: the verdict, and what got worse than in the baseline or, without one, what blocks most.
func Summary(w io.Writer, r *verdict.Report, o Options) error {
	s := newScreen(r, o)
	var lines []string
	if o.Baseline == nil {
		for _, x := range s.items(mostReasons-1, mostDoubts-1) {
			lines = append(lines, x.text)
		}
	} else {
		lines = lostTexts(o.Lost)
		for _, part := range s.changes(o.Baseline) {
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
