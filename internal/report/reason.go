// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/report/codes"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/pkg/kernel"
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
