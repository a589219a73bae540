// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/report/codes"
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

// pair is an object on a kernel, as indices.
type pair struct{ object, kernel int }

// reason is why objects do not work on kernels.
type reason struct {
	texts    []string // what is missing, sorted
	came     string   // the release with which all came, "" for different ones
	refused  bool     // it is not what kernels lack, so that the title of the code has to say what is wrong
	doubt    bool     // it need not be so
	advice   string
	code     string   // of all, "" for several
	sources  []string // file:line, sorted
	subjects []string // what findings are about, sorted
	programs []int    // in order
	pairs    []pair   // in order
	wins     float64  // how many pairs work without it, shared with the other reasons of each pair
}

// found is what is wrong with a program.
type found struct {
	*rule.Finding
	program int
}

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

// each calls f for the findings of at least a status that decide about an object on a kernel, for all pairs of a verdict.
func (s *screen) each(verdict func(object int, s rule.Status) bool, f func(p pair, all []found)) {
	for i := range s.Objects {
		o := &s.Objects[i]
		on := make(map[int][]found)
		for _, d := range o.Decides {
			p := &s.Programs[d.Program]
			for j := range p.Findings {
				x := &p.Findings[j]
				if x.Status < rule.Unknown {
					continue
				}
				for _, k := range x.Kernels {
					if _, decides := slices.BinarySearch(d.Kernels, k); decides && s.counts(k) && verdict(i, o.Status[k]) && x.Status >= min(o.Status[k], rule.Fails) {
						on[k] = append(on[k], found{&x.Finding, d.Program})
					}
				}
			}
		}
		for k := range s.Kernels {
			if len(on[k]) > 0 {
				f(pair{i, k}, on[k])
			}
		}
	}
}

// blockers are the reasons for failures, the one that blocks most first. Those for the same pairs are one.
func (s *screen) blockers() []reason {
	return s.reasons(func(_ int, v rule.Status) bool { return v == rule.Fails }, subject)
}

// subject names what a finding is about, and the map that needs a type or is an argument.
func subject(f *rule.Finding) string {
	switch {
	case f.Code == rule.MapTypeMissing && f.Name != "":
		return fmt.Sprintf("map %s needs %s", f.Name, f.Subject)
	case f.Code == rule.HelperMap && f.Other != "":
		return fmt.Sprintf("helper %s with map %s", f.Subject, f.Other)
	case f.Code == rule.RunningKernelNone:
		return "BTF of the kernel's own"
	}
	g := groupOf(f)
	return g.Subject(1)
}

// reasons groups what is found on pairs by what it is, and that by the pairs.
func (s *screen) reasons(verdict func(object int, s rule.Status) bool, name func(*rule.Finding) string) []reason {
	at := make(map[string]*reason)
	var all []*reason
	s.each(verdict, func(p pair, findings []found) {
		seen := make(map[string][]found)
		for _, f := range findings {
			text := name(f.Finding)
			seen[text] = append(seen[text], f)
		}
		for text, l := range seen {
			f := l[len(l)-1]
			r := at[text]
			if r == nil {
				r = &reason{texts: []string{text}, came: f.Came(), refused: !f.Absent() || f.OfFile(), code: string(f.Code), advice: advice(f.Finding)}
				at[text] = r
				all = append(all, r)
			}
			for _, f := range l {
				r.programs, r.subjects = append(r.programs, f.program), append(r.subjects, subject(f.Finding))
				if f.Source != "" {
					r.sources = append(r.sources, f.Source)
				}
			}
			r.pairs = append(r.pairs, p)
			if s.required != "" {
				r.wins++ // what blocks most
			} else {
				r.wins += 1 / float64(len(seen)) // what the fewest changes win
			}
		}
	})
	var out []reason
	slices.SortFunc(all, func(a, b *reason) int { return cmp.Compare(a.texts[0], b.texts[0]) })
	for _, alike := range words.Group(all, func(r **reason) any { return fmt.Sprint((*r).pairs) }) {
		alike = slices.Concat( // what kernels lack first
			slices.DeleteFunc(slices.Clone(alike), func(r *reason) bool { return r.refused }),
			slices.DeleteFunc(slices.Clone(alike), func(r *reason) bool { return !r.refused }))
		m := *alike[0]
		if slices.ContainsFunc(alike, func(r *reason) bool { return r.came != m.came }) { // each has its own
			m.came = ""
			for _, r := range alike {
				if r.came != "" {
					r.texts[0] += " (" + r.came + ")"
				}
			}
			m.texts = alike[0].texts
		}
		for _, r := range alike[1:] {
			m.texts, m.sources = append(m.texts, r.texts...), nil
			m.programs, m.subjects = append(m.programs, r.programs...), append(m.subjects, r.subjects...)
			if m.code != r.code {
				m.code, m.advice = "", ""
			}
			m.wins += r.wins
		}
		m.programs, m.subjects = sorted(m.programs), sorted(m.subjects)
		slices.SortFunc(m.sources, comparePlaces)
		m.sources = slices.Compact(m.sources)
		if s.required != "" {
			m.wins = float64(len(m.pairs))
		}
		out = append(out, m)
	}
	slices.SortStableFunc(out, func(a, b reason) int {
		return cmp.Or(-cmp.Compare(a.wins, b.wins), -cmp.Compare(len(a.pairs), len(b.pairs)), cmp.Compare(len(a.texts), len(b.texts)))
	})
	return out
}

// advice is the first sentence of what to do about a finding.
func advice(f *rule.Finding) string {
	e := codes.Of(f.Code)
	if e == nil {
		return ""
	}
	if i := strings.Index(e.Fix, ". "); i > 0 {
		return e.Fix[:i+1]
	}
	return e.Fix
}

// loaderMap says with which map left out by its loader an object works on more kernels, "" for none.
func (s *screen) loaderMap(r *reason) string {
	for _, p := range r.pairs {
		o := &s.Objects[p.object]
		if r.code != string(rule.MapTypeMissing) || o.Suggestion == nil {
			continue
		}
		for _, x := range o.Suggestion.Options {
			_, name, _ := strings.Cut(x.Value, ":")
			if h := &o.Suggestion.Row.Headline; x.Name == "loader-map" && strings.Contains(r.texts[0], "map "+name+" ") && h.Since != "" {
				return fmt.Sprintf("If its loader leaves it out on such kernels: --loader-map %s → then Linux %s", name, workingReleases(h))
			}
		}
	}
	return ""
}

// text names the objects, the kernels and the reason.
func (s *screen) text(r *reason) string {
	var objects, kernels []int
	for _, p := range r.pairs {
		objects, kernels = append(objects, p.object), append(kernels, p.kernel)
	}
	objects = sorted(objects)
	what := listed(r.texts, mostNames)
	if r.code == "" {
		texts := slices.Clone(r.texts)
		for i, t := range texts {
			if m, typ, ok := strings.Cut(t, " needs "); ok {
				texts[i] = typ + " for " + m
			}
		}
		what = some(texts)
	}
	if !r.refused && !r.doubt && !strings.Contains(what, " needs ") {
		what = "needs " + what
	}
	text := fmt.Sprintf("%s, %s: %s", short(s.names(objects)), s.where(sorted(kernels)), what)
	if r.came != "" {
		text += " (" + r.came + ")"
	}
	if r.refused && r.code != "" {
		text += ": " + title(rule.Code(r.code))
	}
	var places []string
	if family := rule.FamilyOf(rule.Code(r.code)); len(objects) == 1 && len(r.programs) == 1 && family != rule.FamilyMapType && family != rule.FamilyMapDef {
		places = append(places, "program "+s.Programs[r.programs[0]].Name)
	}
	if n := len(r.sources); n == 1 || n > 0 && len(objects) == 1 {
		place := path.Base(r.sources[0])
		if n > 1 {
			place += " and " + words.Plural(n-1, "other line")
		}
		places = append(places, place)
	}
	if len(places) > 0 {
		text += " (" + strings.Join(places, ", ") + ")"
	}
	if r.code != "" {
		text += " [" + r.code + "]"
	}
	return text
}

// short lists names, fewer if they are long.
func short(names []string) string {
	const most = 60
	if text := some(names); len(text) <= most || len(names) < 3 {
		return text
	}
	return fmt.Sprintf("%s and %d more", names[0], len(names)-1)
}

// names are the names of objects.
func (s *screen) names(objects []int) (names []string) {
	for _, i := range objects {
		names = append(names, s.Objects[i].Object)
	}
	return names
}

// where folds kernels into releases: "on 6.1 only", "on 5.10 and older", "on all arm64 kernels".
func (s *screen) where(kernels []int) string {
	in := make(map[int]bool)
	var releases, machines []string
	for _, k := range kernels {
		in[k] = true
		machines = append(machines, s.Kernels[k].Key().Arch)
		if v := s.Kernels[k].Release(); v != "" {
			releases = append(releases, v)
		}
	}
	n := 0
	var others []int // which they are not, of their machines
	for k := range s.Kernels {
		if !s.counts(k) {
			continue
		}
		if n++; !in[k] && s.meets(k, kernels) {
			others = append(others, k)
		}
	}
	switch {
	case len(kernels) == n && n > 1:
		return "on all kernels"
	case len(kernels) > 1 && len(others) == 0:
		return "on all " + some(sorted(machines)) + " kernels"
	case len(releases) < len(kernels) || len(releases) == 0:
		return "on " + words.Plural(len(kernels), "kernel")
	}
	slices.SortFunc(releases, kernel.CompareVersions)
	first, last := releases[0], releases[len(releases)-1]
	older, newer := true, true
	for _, k := range others {
		if v := s.Kernels[k].Release(); v != "" {
			older = older && kernel.CompareVersions(v, last) > 0
			newer = newer && kernel.CompareVersions(v, first) < 0
		}
	}
	switch {
	case first == last:
		return "on " + first + " only"
	case older:
		return "on " + last + " and older"
	case newer:
		return "on " + first + " and newer"
	}
	return fmt.Sprintf("on %s from %s to %s", words.Plural(len(kernels), "kernel"), first, last)
}

// meets reports whether a kernel has the machine of one of some kernels.
func (s *screen) meets(k int, kernels []int) bool {
	return slices.ContainsFunc(kernels, func(other int) bool { return s.Kernels[k].Key().Arch == s.Kernels[other].Key().Arch })
}

// fromLoader are the codes of findings on what only the loader decides.
var fromLoader = []rule.Code{rule.AttachTargetLoader, rule.AttachTargetReplaced, rule.TypesSupplied}

// uncertain returns the objects about which the loader decides, and the doubts about the others.
func (s *screen) uncertain() (loader []int, other []reason) {
	decided := make(map[int]bool)
	doubt := func(object int, v rule.Status) bool {
		return !decided[object] && (v == rule.MayFail || v == rule.Unknown)
	}
	s.each(doubt, func(p pair, findings []found) {
		for _, f := range findings {
			if slices.Contains(fromLoader, f.Code) || nowhere(s.Report, &s.Objects[p.object], f.Finding) {
				decided[p.object] = true
			}
		}
	})
	other = s.reasons(doubt, func(f *rule.Finding) string { return title(f.Code) })
	for i := range other {
		if r := &other[i]; r.code != "" { // what is in doubt, and its title
			r.texts, r.refused = r.subjects, true
		}
		other[i].doubt = true
	}
	return slices.Sorted(maps.Keys(decided)), other
}

// showsNoTarget are the codes of findings on kernels that do not show what programs can attach to.
var showsNoTarget = []rule.Code{rule.AnalysisWhen, rule.AttachTargetNoFunctions, rule.AttachTargetTracepoints}

// nowhere reports whether an attach target that BTF need not list is on no kernel that an object is for, and these are several: a
// placeholder. Kernels that cannot show it do not count.
func nowhere(r *verdict.Report, row *verdict.ObjectRow, f *rule.Finding) bool {
	const enough = 3
	if !f.Attach || f.Code != rule.AttachTargetUnlisted && f.Code != rule.AttachTargetTracepoint {
		return false
	}
	lacking, silent := make(map[int]bool), make(map[int]bool)
	for _, p := range row.Programs {
		for _, x := range r.Programs[p].Findings {
			for _, k := range x.Kernels {
				lacking[k] = lacking[k] || x.Subject == f.Subject && ofTarget(x.Code) || x.Status == rule.Fails
				silent[k] = silent[k] || slices.Contains(showsNoTarget, x.Code)
			}
		}
	}
	n := 0
	for k, v := range row.Status {
		if !v.Judged() || silent[k] && !lacking[k] {
			continue
		}
		if !lacking[k] {
			return false
		}
		n++
	}
	return n >= enough
}

// ofTarget reports whether a code is about what programs attach to.
func ofTarget(c rule.Code) bool { return rule.FamilyOf(c) == rule.FamilyTarget }

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
