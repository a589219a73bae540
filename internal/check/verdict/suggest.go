// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/check/rule"
)

// Suggestion is options that describe a loader with which an object works on more kernels. Whether its
// loader is like that, only the user knows.
type Suggestion struct {
	Options []Option
	Row     ObjectRow // object's row with the options
	Targets []string  // programs whose attach targets the loader seems to set
	Tails   bool      // tail calls may reach these programs: the object has a program array
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
	loaderView // view of the worst of the loaders that count
	object     *rule.Object
	kernels    []Column
}

func newEvidence(pl *plan, o *rule.Object, rows []ProgramRow, kernels []Column) *evidence {
	e := &evidence{loaderView: loaderView{plan: pl, rows: rows}, object: o, kernels: kernels}
	for i := range rows {
		e.programs = append(e.programs, verdictRow{rows[i].Status, rows[i].Load})
	}
	return e
}

// status returns the verdict on a need on kernel k.
func (e *evidence) status(n need, k int) rule.Status {
	_, of := e.best(n, k, e.kernels[k].Key())
	return of.status
}

// mostPrograms limits the objects for which suggestions are searched.
const mostPrograms = 512

// spared is programs without which an object may work, the number of their needs, and the kernels that lack their targets.
type spared struct {
	programs []int
	needs    int
	kernels  []int
}

// spare returns groups of needs that work on some kernels. The needs of a group fail on the same other kernels,
// only because these lack targets.
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
		case s <= rule.Guarded:
			works = true
		case s > rule.Other:
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
			if f.Status <= rule.Other || !has(f.Kernels, k) {
				continue
			}
			switch f.Code {
			case rule.AttachTargetMissing, rule.AttachTargetUnlisted, rule.AttachTargetTracepoint,
				rule.AttachTargetNoSymbol, rule.AttachTargetLeftOut, rule.AttachTargetKprobes, rule.AttachTargetSyscall:
				absent = true
			case rule.ProgTypeMissing, rule.AttachTypeMissing:
				noType = true
			default:
				other = other || rule.FamilyOf(f.Code) != rule.FamilyTarget || seemsSet(f)
			}
		}
	}
	return absent && !noType, other
}

// seemsSet reports whether a finding says that the loader may set another target.
func seemsSet(f *KernelFinding) bool {
	return f.Code == rule.AttachTargetLoader || f.Code == rule.AttachTargetNowhere
}

// releasesWithout returns a selector of releases that has no kernel of a list and all others that the object is for, "" if there is none.
func (e *evidence) releasesWithout(list []int) string {
	var first, last [2]rule.Release // releases of the other kernels, and of the list
	for k := range e.kernels {
		v, in := e.kernels[k].release(), 0
		if slices.Contains(list, k) {
			in = 1
		} else if e.status(e.needs[0], k) == rule.Other {
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
		if name := e.object.ProgramName(i); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, "+")
}

// prefix limits an option to the object.
func (e *evidence) prefix() string { return patternOf(e.object) + ":" }

// patternOf returns a pattern that matches an object's name. Letters that mean something in options become a ?.
func patternOf(o *rule.Object) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(`*[\=,:+`, r) {
			return '?'
		}
		return r
	}, path.Base(o.Name()))
}

// suggest looks for options with which object i, whose plan is given, works on more kernels. It returns nil if there are none.
func (v *judge) suggest(i int, e *evidence) *Suggestion {
	row := &v.Report.Objects[i]
	s := &Suggestion{Row: *row}
	for j := range e.rows {
		set := func(f KernelFinding) bool { return seemsSet(&f) || v.lackedByAll(row, &f.Finding) }
		if slices.ContainsFunc(e.rows[j].Findings, set) {
			s.Targets = append(s.Targets, e.rows[j].Name)
		}
	}
	if c := row.Sum(); c.Works < c.Judged() && len(e.rows) <= mostPrograms {
		v.search(i, e, s)
		v.prune(i, s)
	}
	s.Tails = len(s.Targets) > 0 && e.object.HasTailCalls()
	if len(s.Options)+len(s.Targets) == 0 {
		return nil
	}
	return s
}

// leftToLoader are codes of definitions of maps that loaders may complete.
var leftToLoader = []rule.Code{rule.MapInner, rule.MapNoEntries, rule.MapRingSize}

// loaderMaps returns an option for each map that the loader may set: its type is missing on some kernels, or its definition is incomplete.
func (e *evidence) loaderMaps() (options []Option) {
	var names []string
	for j := range e.rows {
		for i := range e.rows[j].Findings {
			f := &e.rows[j].Findings[i].Finding
			if rule.FamilyOf(f.Code) == rule.FamilyMapType || slices.Contains(leftToLoader, f.Code) {
				names = append(names, mapName(f))
			}
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		o := Option{loaderMap, e.prefix() + name}
		if _, err := new(Policy).with([]Option{o}); err == nil && name != "" {
			options = append(options, o)
		}
	}
	return options
}

// search adds options.
func (v *judge) search(i int, e *evidence, s *Suggestion) {
	try := func(more ...Option) bool {
		options := append(slices.Clip(s.Options), more...)
		p, err := v.Policy.with(options)
		if err != nil { // options cannot express a name
			return false
		}
		row, with := v.objectRow(i, &p)
		if !row.Sum().better(s.Row.Sum()) {
			return false
		}
		s.Options, s.Row, e = options, row, with
		return true
	}
	if maps := e.loaderMaps(); len(maps) > 0 { // prune removes options that change nothing
		try(maps...)
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
			if releases != "" && try(Option{when, names + "=" + releases}) || try(Option{optional, names}) {
				dropped, again = dropped+g.needs, true
				break
			}
		}
	}
}

// prune removes options without which the verdicts are the same.
func (v *judge) prune(i int, s *Suggestion) {
	for n := 0; n < len(s.Options) && len(s.Options) > 1; {
		fewer := slices.Delete(slices.Clone(s.Options), n, n+1)
		p, err := v.Policy.with(fewer)
		if err != nil {
			return
		}
		if row, _ := v.objectRow(i, &p); slices.Equal(row.Status, s.Row.Status) {
			s.Options, s.Row = fewer, row
			continue
		}
		n++
	}
}

// better reports whether an object works on more kernels, or on as many and fails on fewer.
func (c Cell) better(than Cell) bool {
	return c.Works > than.Works || c.Works == than.Works && c.Fails < than.Fails
}

// showsNoTarget are the codes of findings on kernels that do not show what programs can attach to.
var showsNoTarget = []rule.Code{rule.AnalysisWhen, rule.AttachTargetNoFunctions, rule.AttachTargetTracepoints}

// lackedByAll reports whether all kernels for an object lack an attach target that BTF need not list. It looks like a placeholder
// then. Kernels that cannot show the target do not count, and too few kernels are no evidence.
func (r *Report) lackedByAll(row *ObjectRow, f *rule.Finding) bool {
	const enough = 3
	unlisted := f.Attach && (f.Code == rule.AttachTargetUnlisted || f.Code == rule.AttachTargetTracepoint)
	if !unlisted || row.Sum().Judged() < enough {
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
		switch {
		case !v.Judged():
		case lacking[k]:
			n++
		case !silent[k]:
			return false
		}
	}
	return n >= enough
}

// ofTarget reports whether a code is about what programs attach to.
func ofTarget(c rule.Code) bool { return rule.FamilyOf(c) == rule.FamilyTarget }
