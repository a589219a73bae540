// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Suggestion is options that describe a loader with which an object works on more kernels. Whether its
// loader is like that, only the user knows.
type Suggestion struct {
	Options []Option
	Row     ObjectRow // with the options
	Targets []string  // programs whose attach targets the loader seems to set
}

// with returns the policy with options added.
func (p *Policy) with(options []Option) (out Policy, err error) {
	out = *p
	out.choices = slices.Clip(p.choices)
	for _, o := range options {
		err = errors.Join(err, out.Add(o.Name, o.Value))
	}
	return out, err
}

// evidence is the plan for an object, and on which kernels its programs work with any loader.
type evidence struct {
	view
	o       *Object
	rows    []Program // of the object
	kernels []Kernel
	places  []place // by program
}

func newEvidence(pl *plan, o *Object, rows []Program, kernels []Kernel) *evidence {
	e := &evidence{view: view{plan: pl}, o: o, rows: rows, kernels: kernels}
	for i := range rows {
		e.places = append(e.places, o.place(i))
		e.programs = append(e.programs, verdictRow{rows[i].Status, rows[i].Load})
	}
	return e
}

// status returns the verdict on a need on kernel k.
func (e *evidence) status(n need, k int) Status {
	_, of := e.best(n, k, e.kernels[k].Key())
	return of.status
}

// compare counts the kernels on which both needs certainly work, and on which only one does.
func (e *evidence) compare(a, b need) (both, onlyA, onlyB int) {
	for k := range e.kernels {
		switch x, y := e.status(a, k) <= Guarded, e.status(b, k) <= Guarded; {
		case x && y:
			both++
		case x:
			onlyA++
		case y:
			onlyB++
		}
	}
	return both, onlyA, onlyB
}

// mostPrograms limits the objects whose programs are compared with each other.
const mostPrograms = 512

// guess makes alternatives of programs that have to work on no common kernel, but each on some, and whose names differ
// only as those of renamed functions do. If all had to work, the object would work on no kernel.
func (e *evidence) guess() {
	if len(e.rows) > mostPrograms {
		return
	}
	groups := make(map[string][]need)
	var keys []string
	for _, n := range e.needs {
		key := e.renamed(n)
		if key == "" {
			continue
		}
		if groups[key] == nil {
			keys = append(keys, key)
		}
		groups[key] = append(groups[key], n)
	}
	for _, key := range keys {
		if g := groups[key]; len(g) > 1 && len(g) <= len(e.kernels) && e.exclusive(g) {
			e.join(g)
		}
	}
}

// renamed returns what all needs share whose programs differ only as before and after a function was
// renamed; "" if a rule of the user is about the need, or its own programs differ in more.
func (e *evidence) renamed(n need) (shared string) {
	for _, i := range slices.Concat(n.alternatives...) {
		p := &e.places[i]
		own := fmt.Sprint(p.what, p.to)
		if n.said || len(e.when[i]) > 0 || shared != "" && own != shared {
			return ""
		}
		shared = own
	}
	return shared
}

// exclusive reports whether needs are alike, each works on a kernel, and no kernel runs two.
func (e *evidence) exclusive(needs []need) bool {
	for i, a := range needs {
		for _, b := range needs[:i] {
			if both, onlyA, onlyB := e.compare(a, b); both > 0 || onlyA == 0 || onlyB == 0 || e.likeness(a, b) < 1 {
				return false
			}
		}
	}
	return true
}

// join replaces needs by one that has their alternatives.
func (e *evidence) join(needs []need) {
	joined := need{joined: true}
	for _, n := range needs {
		joined.alternatives = append(joined.alternatives, n.alternatives...)
	}
	e.needs = append(slices.DeleteFunc(e.needs, func(n need) bool { return joined.has(n.alternatives[0]) }), joined)
	e.rules = append(slices.DeleteFunc(e.rules, func(r Rule) bool { return joined.has(r.Programs[0]) }),
		Rule{Kind: OneOf, Programs: joined.alternatives, Guess: Exclusive})
}

// has reports whether programs are an alternative.
func (n *need) has(programs []int) bool {
	return slices.ContainsFunc(n.alternatives, func(l []int) bool { return slices.Equal(l, programs) })
}

// place is what a program is attached to, else only its name, in words.
type place struct {
	what     string // entry, exit, tracepoint, or the prefix of the section
	target   string
	to, name []string // words of the target and the program
}

func (o *Object) place(i int) (p place) {
	pr := &o.Programs[i]
	p.name = nameWords(o.programName(i))
	p.to = p.name
	if s := pr.Attach; s != nil {
		prefix := strings.TrimSuffix(s.Prefix, ".s")
		p.what = cmp.Or(attachPoints[prefix], prefix)
		if to := path.Base(s.Target(pr.Section)); to != "." && attachPoints[prefix] != "" {
			p.target, p.to = to, nameWords(to)
		}
	}
	return p
}

// nameWords splits a name, without what differs where a function was renamed: leading underscores, page and folio, versions.
func nameWords(name string) (words []string) {
	for _, w := range strings.Split(stem(name), "_") {
		switch {
		case w == "page":
			words = append(words, "folio")
		case w != "" && w != "old" && w != "new" && !isVersion(w):
			words = append(words, w)
		}
	}
	return words
}

// isVersion reports whether a word is like v511; v4 and v6 are protocols.
func isVersion(word string) bool {
	digits, ok := strings.CutPrefix(word, "v")
	return ok && len(digits) > 1 && strings.Trim(digits, "0123456789") == ""
}

// likeness says how much the programs of two needs are alike: 1 if their targets' names differ only as before and after renaming,
// or their own names if both are attached to one target in one way. It is 0 if only one is attached to code of the kernel, or one to
// entries and the other to exits.
func (e *evidence) likeness(a, b need) (most float64) {
	for _, i := range slices.Concat(a.alternatives...) {
		for _, j := range slices.Concat(b.alternatives...) {
			p, q := &e.places[i], &e.places[j]
			if p.what != q.what && p.what != tracepoint && q.what != tracepoint {
				continue
			}
			if p.target == q.target && e.sameWay(i, j) {
				most = max(most, similar(p.name, q.name))
			} else {
				most = max(most, similar(p.to, q.to))
			}
		}
	}
	return most
}

// similar returns the share of words that names have in common, 0 if their verbs differ.
func similar(a, b []string) float64 {
	if !akin(verb(a), verb(b)) {
		return 0
	}
	n := 0
	for _, word := range a {
		if slices.ContainsFunc(b, func(other string) bool { return akin(word, other) }) {
			n++
		}
	}
	return float64(n) / float64(max(len(a), len(b), 1))
}

// verb is the last word that is not folio.
func verb(words []string) (verb string) {
	for _, w := range words {
		if w != "folio" {
			verb = w
		}
	}
	return verb
}

// akin reports whether words are equal, or long and begin alike, as dirty and dirtied do.
func akin(a, b string) bool {
	const begin = 4
	return a == b || len(a) > begin && len(b) > begin && a[:begin] == b[:begin]
}

// sameWay reports whether programs are attached in the same way.
func (e *evidence) sameWay(i, j int) bool {
	s, t := e.o.Programs[i].Attach, e.o.Programs[j].Attach
	return s == nil || t == nil || s.ProgType == t.ProgType && s.Type == t.Type
}

// shareWay reports whether a program of one need is attached in the same way as one of the other.
func (e *evidence) shareWay(a, b need) bool {
	return slices.ContainsFunc(slices.Concat(a.alternatives...), func(i int) bool {
		return slices.ContainsFunc(slices.Concat(b.alternatives...), func(j int) bool { return e.sameWay(i, j) })
	})
}

// alternatives joins needs that look like alternatives as long as there are any, the most alike first.
func (e *evidence) alternatives() {
	for {
		var best [2]need
		most := 0.0
		for i, a := range e.needs {
			for _, b := range e.needs[i+1:] {
				l := e.likeness(a, b)
				if a.said || b.said || l < 0.5 || l <= most {
					continue
				}
				both, onlyA, onlyB := e.compare(a, b)
				if onlyA+onlyB > 0 && (l == 1 || !e.shareWay(a, b) || both == 0 && onlyA > 0 && onlyB > 0) {
					best, most = [2]need{a, b}, l
				}
			}
		}
		if most == 0 {
			return
		}
		e.join(best[:])
	}
}

// spared is programs without which an object may work, the number of their needs, and the kernels that lack what they are attached to.
type spared struct {
	programs []int
	needs    int
	kernels  []int
}

// spare returns groups of needs that work on some kernels, and fail on the same others only because these lack what
// the programs are attached to.
func (e *evidence) spare() (groups []spared) {
	for _, n := range e.needs {
		lacking := e.lacking(n)
		if n.said || len(lacking) == 0 {
			continue
		}
		i := slices.IndexFunc(groups, func(g spared) bool { return slices.Equal(g.kernels, lacking) })
		if i < 0 {
			i = len(groups)
			groups = append(groups, spared{kernels: lacking})
		}
		groups[i].programs = append(groups[i].programs, slices.Concat(n.alternatives...)...)
		groups[i].needs++
	}
	return groups
}

// lacking returns the kernels that lack what a need's programs are attached to, none if it fails for something else on a
// kernel or certainly works on none.
func (e *evidence) lacking(n need) (kernels []int) {
	works := false
	for k := range e.kernels {
		switch s := e.status(n, k); {
		case s <= Guarded:
			works = true
		case s > Other:
			absent, other := e.absent(n, k)
			if other {
				return nil
			}
			if absent {
				kernels = append(kernels, k)
			}
		}
	}
	if !works {
		return nil
	}
	return kernels
}

// absent reports whether kernel k seems to lack what a program of a need is attached to, and whether something else makes one fail
// that has nothing to do with attaching. A kernel that lacks the program's type says nothing about targets.
func (e *evidence) absent(n need, k int) (absent, other bool) {
	noType := false
	for _, i := range slices.Concat(n.alternatives...) {
		for j := range e.rows[i].Findings {
			f := &e.rows[i].Findings[j]
			if _, has := slices.BinarySearch(f.Kernels, k); !has || f.Status <= Other {
				continue
			}
			switch f.Code {
			case AttachTargetMissing, AttachTargetUnlisted, AttachTargetTracepoint, AttachTargetNoSymbol, AttachTargetLeftOut, AttachTargetKprobes, AttachTargetSyscall:
				absent = true
			case ProgTypeMissing, AttachTypeMissing:
				noType = true
			default:
				other = other || FamilyOf(f.Code) != FamilyTarget || f.Code == AttachTargetLoader
			}
		}
	}
	return absent && !noType, other
}

// releasesWithout returns a selector of releases that has no kernel of a list and all others that the object is for, "" if there is none.
func (e *evidence) releasesWithout(list []int) string {
	var first, last [2]release // of the others, and of the list
	for k := range e.kernels {
		v, in := e.kernels[k].release(), 0
		if slices.Contains(list, k) {
			in = 1
		} else if e.status(e.needs[0], k) == Other {
			continue
		}
		if v == 0 {
			return ""
		}
		if first[in] == 0 || v < first[in] {
			first[in] = v
		}
		last[in] = max(last[in], v)
	}
	switch {
	case last[1] < first[0]:
		return ">=" + first[0].String()
	case last[0] < first[1]:
		return "<" + first[1].String()
	}
	return ""
}

// pattern names programs of the object.
func (e *evidence) pattern(programs []int) string {
	var names []string
	for _, i := range programs {
		if name := e.o.programName(i); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, "+")
}

// prefix limits an option to the object. Letters that mean something in options become a ?.
func (e *evidence) prefix() string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(`*[\=,:`, r) {
			return '?'
		}
		return r
	}, path.Base(e.o.name)) + ":"
}

// oneOf is a need as an option.
func (e *evidence) oneOf(alternatives [][]int) Option {
	var texts []string
	for _, l := range alternatives {
		texts = append(texts, e.pattern(l))
	}
	return Option{oneOf, e.prefix() + strings.Join(texts, ",")}
}

// suggest looks for options with which object i, whose plan is given, works on more kernels. It returns nil if there are none.
func (r *run) suggest(a *axis, i int, e *evidence) *Suggestion {
	row := &a.Objects[i]
	s := &Suggestion{Row: *row}
	for _, rule := range row.Rules {
		if rule.Guess == Exclusive {
			s.Options = append(s.Options, e.oneOf(shifted(rule.Programs, -row.Programs[0])))
		}
	}
	for j := range e.rows {
		if slices.ContainsFunc(e.rows[j].Findings, func(f KernelFinding) bool { return f.Code == AttachTargetLoader }) {
			s.Targets = append(s.Targets, e.rows[j].Name)
		}
	}
	if row.Headline.Works < row.Headline.Total && len(e.rows) <= mostPrograms {
		r.search(a, i, e, s)
	}
	if len(s.Options)+len(s.Targets) == 0 {
		return nil
	}
	return s
}

// search adds options.
func (r *run) search(a *axis, i int, e *evidence, s *Suggestion) {
	first := a.Objects[i].Programs[0]
	evaluate := func(options []Option) (ObjectRow, *evidence) {
		p, err := r.Policy.with(options)
		if err != nil { // a name is not one that options can have
			p = r.Policy
		}
		row, e := r.objectRow(a.Report, i, first, &p)
		row.Headline = a.headline(&row)
		return row, e
	}
	try := func(options []Option) bool {
		row, with := evaluate(options)
		if !row.Headline.better(&s.Row.Headline) {
			return false
		}
		s.Options, s.Row, e = options, row, with
		return true
	}
	_, joined := evaluate(nil) // a plan that may change
	joined.alternatives()
	known, choices := s.Options, []Option(nil)
	for _, n := range joined.needs {
		if n.joined {
			choices = append(choices, e.oneOf(n.alternatives))
		}
	}
	if try(choices) {
		for j := len(choices) - 1; j >= 0; j-- {
			fewer := slices.Delete(slices.Clone(s.Options), j, j+1)
			if slices.Contains(known, choices[j]) {
				continue
			}
			if row, with := evaluate(fewer); !s.Row.Headline.better(&row.Headline) {
				s.Options, s.Row, e = fewer, row, with
			}
		}
	}
	dropped, all := 0, len(e.needs)
	for again := true; again; {
		again = false
		for _, g := range e.spare() {
			if 2*(dropped+g.needs) >= all {
				continue
			}
			names := e.prefix() + e.pattern(g.programs)
			releases := e.releasesWithout(g.kernels)
			if releases != "" && try(append(slices.Clip(s.Options), Option{when, names + "=" + releases})) ||
				try(append(slices.Clip(s.Options), Option{optional, names})) {
				dropped, again = dropped+g.needs, true
				break
			}
		}
	}
}

// better reports whether an object works on more kernels, or on as many and fails on fewer.
func (h *Headline) better(than *Headline) bool {
	return h.Works > than.Works || h.Works == than.Works && h.Works+h.MayFail > than.Works+than.MayFail
}
