// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"slices"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// ObjectRow says of a whole object on which kernels it works: whether its loader
// gets it loaded, and what it has to attach attached. Indices are those of
// [Report.Programs] and [Report.Kernels].
type ObjectRow struct {
	Object   string        `json:"object"`
	Programs []int         `json:"programs"`           // all programs of the object, ascending
	Variants [][]int       `json:"variants,omitempty"` // alternatives as indices of objects; only in [Report.Variants]
	Loader   rule.Loader   `json:"loader,omitempty"`   // loader of Status and Load; "" for the worst one
	Status   []rule.Status `json:"status"`             // one per kernel
	Load     []rule.Status `json:"load"`               // verdict on loading alone, one per kernel
	// Loaders has the verdicts for each loader if they differ. A loader that does not open the object does not count in
	// Status and Load if another one opens it.
	Loaders []LoaderRow `json:"loaders,omitempty"`
	Decides []Decider   `json:"decides,omitempty"` // programs that keep the object from working, or may
	Rules   []Rule      `json:"rules,omitempty"`   // rules about which programs have to work; none if all have to
	Cells   []Cell      `json:"cells"`             // one per line of [Report.Lines]
	Minima  []Minimum   `json:"minima,omitempty"`  // one per machine

	Suggestion *Suggestion `json:"-"` // nil for none

	// excused reports findings on maps that the loader sets, by a policy that was tried; nil for none.
	excused func(*rule.Finding) bool
}

// LoaderRow is the verdicts on an object with one loader.
type LoaderRow struct {
	Loader rule.Loader   `json:"loader"`
	Status []rule.Status `json:"status"` // one per kernel
	Load   []rule.Status `json:"load"`   // verdict on loading alone, one per kernel
}

// StatusWith returns the verdicts with a loader, by kernel, or those of the worst if loaders agree or it is "".
func (o *ObjectRow) StatusWith(l rule.Loader) []rule.Status {
	for _, r := range o.Loaders {
		if r.Loader == l {
			return r.Status
		}
	}
	return o.Status
}

// Decider is a program that an object needs and that is unknown, may fail or fails on
// some kernels, ascending.
type Decider struct {
	Program int   `json:"program"`
	Kernels []int `json:"kernels"`
}

// Rule says of some programs of an object when they have to work.
type Rule struct {
	Kind RuleKind `json:"kind"`
	// Programs has the alternatives of OneOf, each with all its programs. For other kinds it is one list, or none for
	// the whole object.
	Programs [][]int `json:"programs"`
	When     string  `json:"when,omitempty"`  // selector of OnlyWhen
	Guess    Guess   `json:"guess,omitempty"` // why it was guessed; "" if the user says it
	At       string  `json:"at,omitempty"`    // common target of SameTarget, such as "tracepoint sched_switch"
}

// Guess says why a rule was guessed.
type Guess string

// The guesses.
const (
	Marked      Guess = "marked"       // SEC has a ?
	AllMarked   Guess = "all_marked"   // SEC of all programs has a ?
	SomeMachine Guess = "some_machine" // only some machines have the system call
	SameTarget  Guess = "same_target"  // all programs are attached to At
	SameName    Guess = "same_name"    // names differ only in words about the way of attaching
	Exclusive   Guess = "exclusive"    // names differ as those of renamed functions; a kernel runs at most one
)

// RuleKind is what a rule says.
type RuleKind string

// The kinds of rules.
const (
	Optional RuleKind = "optional"  // the object works without them
	OneOf    RuleKind = "one_of"    // one of the alternatives has to work
	OnlyWhen RuleKind = "only_when" // the programs are loaded on some kernels only
)

// objectRow puts the rows of object i's programs together as its loader does, by a policy.
func (v *judge) objectRow(i int, policy *Policy) (ObjectRow, *evidence) {
	rep, o, first := v.Report, v.Setup.Objects[i], v.first[i]
	row := ObjectRow{Object: o.Name(), Programs: []int{}, Loader: v.loader[i]}
	for j := range o.Programs {
		row.Programs = append(row.Programs, first+j)
	}
	pl := policy.planFor(o)
	e := newEvidence(pl, o, rep.Programs[first:first+len(o.Programs)], rep.Kernels)
	if !policy.Exact {
		e.joinRenamed()
	}
	for _, rule := range pl.rules {
		rule.Programs = shifted(rule.Programs, first)
		row.Rules = append(row.Rules, rule)
	}
	row.excused = func(f *rule.Finding) bool { return mapName(f) != "" && policy.SetsMap(o, mapName(f)) }
	var views []loaderView
	for _, l := range v.Loaders {
		of := loaderView{plan: pl, marked: policy.Exact && l == rule.EbpfGo, rows: e.rows, excused: row.excused}
		for j := range o.Programs {
			of.programs = append(of.programs, rep.Programs[first+j].with(l, row.excused))
		}
		views = append(views, of)
	}
	row.setDecides(v.setStatus(&row, i, views), first)
	return row, e
}

// setStatus sets the verdicts on object i, given what each loader sees. It returns the kernels on which each of the object's programs
// decides about it.
func (v *judge) setStatus(row *ObjectRow, i int, views []loaderView) (decides [][]int) {
	o := v.Setup.Objects[i]
	for _, l := range v.Loaders {
		row.Loaders = append(row.Loaders, LoaderRow{Loader: l})
	}
	open := v.LoadersOf(o)
	decides = make([][]int, len(o.Programs))
	for k := range v.Kernels {
		worst, by := kernelStatus{}, []int(nil)
		for n := range views {
			l := &row.Loaders[n]
			of, deciding := v.onKernel(k, i, l.Loader, &views[n])
			aside := of.status.Judged() && !slices.Contains(open, l.Loader) // only other loaders open the object
			if aside {
				for _, f := range v.refused(o, l.Loader) {
					of = of.or(kernelStatus{f.Status, f.Status})
				}
			}
			l.Status, l.Load = append(l.Status, of.status), append(l.Load, of.load)
			if row.Loader == l.Loader || row.Loader == "" && !aside {
				worst, by = worst.or(of), append(by, deciding...)
			}
		}
		row.Status, row.Load = append(row.Status, worst.status), append(row.Load, worst.load)
		slices.Sort(by)
		for _, j := range slices.Compact(by) {
			decides[j] = append(decides[j], k)
		}
	}
	differ := slices.ContainsFunc(row.Loaders, func(l LoaderRow) bool {
		return !slices.Equal(l.Status, row.Status) || !slices.Equal(l.Load, row.Load)
	})
	if !differ {
		row.Loaders = nil
	}
	return decides
}

// setDecides sets Decides to the kernels of each program, by index from first on.
func (row *ObjectRow) setDecides(decides [][]int, first int) {
	for j, kernels := range decides {
		if len(kernels) == 0 {
			continue
		}
		if n := len(row.Decides); n > 0 && slices.Equal(row.Decides[n-1].Kernels, kernels) {
			kernels = row.Decides[n-1].Kernels // most programs of an object share their kernels
		}
		row.Decides = append(row.Decides, Decider{first + j, kernels})
	}
}

// onKernel returns the verdict on object i on kernel k with a loader that opens it, and the programs that decide it.
func (v *judge) onKernel(k, i int, l rule.Loader, view *loaderView) (of kernelStatus, deciding []int) {
	of, deciding = view.on(k, v.Kernels[k].Key())
	switch s := v.wholeStatus(k, i, l, view.excused); {
	case s == rule.Other:
		return kernelStatus{rule.Other, rule.Other}, nil
	case s > of.status && of.status.Judged():
		return kernelStatus{s, max(s, of.load)}, view.all(k, s)
	}
	return of, deciding
}

func shifted(lists [][]int, by int) [][]int {
	out := [][]int{}
	for _, l := range lists {
		var s []int
		for _, i := range l {
			s = append(s, i+by)
		}
		out = append(out, s)
	}
	return out
}

// wholeStatus returns the verdict on what object i needs on kernel k whichever of its programs are loaded.
// cilium/ebpf needs only what the loaded programs refer to.
func (v *judge) wholeStatus(k, i int, l rule.Loader, excused func(*rule.Finding) bool) (s rule.Status) {
	for _, f := range v.needs(k, i) {
		if excused(&f) {
			continue
		}
		if f.Status == rule.Other || (l != rule.EbpfGo || f.OfObject()) && f.Concerns(l) {
			s = max(s, f.Status)
		}
	}
	return s
}

// kernelStatus is a verdict on one kernel.
type kernelStatus struct {
	status rule.Status
	load   rule.Status // verdict on loading alone
}

// or is the verdict on two things that have to work both.
func (v kernelStatus) or(w kernelStatus) kernelStatus {
	return kernelStatus{max(v.status, w.status), max(v.load, w.load)}
}

// better reports whether a verdict is better than another one: more works or, if that is equal, more loads.
func (v kernelStatus) better(than kernelStatus) bool {
	return v.status < than.status || v.status == than.status && v.load < than.load
}

// verdictRow is verdicts by kernel.
type verdictRow struct{ status, load []rule.Status }

func (r verdictRow) on(k int) kernelStatus { return kernelStatus{r.status[k], r.load[k]} }

// with are the verdicts on a program with one loader.
func (p *ProgramRow) with(l rule.Loader, excused func(*rule.Finding) bool) verdictRow {
	if !slices.ContainsFunc(p.Findings, func(f KernelFinding) bool { return f.Loader != "" || excused(&f.Finding) }) {
		return verdictRow{p.Status, p.Load}
	}
	status, load := p.verdicts(len(p.Status), func(f *rule.Finding) bool { return f.Concerns(l) && !excused(f) })
	return verdictRow{status, load}
}

// loaderView is an object as one loader sees it.
type loaderView struct {
	*plan
	marked   bool // the loader loads programs marked with a ?
	programs []verdictRow
	rows     []ProgramRow             // rows of the same programs
	excused  func(*rule.Finding) bool // see ObjectRow.excused
}

// on returns the verdict on the programs that are loaded on a kernel, and the programs that do not work there.
func (v *loaderView) on(k int, key kernel.Key) (all kernelStatus, by []int) {
	switch v.loadsAny(len(v.programs), key) {
	case isNotLoaded:
		return kernelStatus{rule.Unloaded, rule.Unloaded}, nil
	case mayBeLoaded:
		for i := range v.programs {
			if v.loads(i, key) == mayBeLoaded {
				by = append(by, i)
			}
		}
		return kernelStatus{rule.Unknown, rule.Unknown}, by
	}
	needs := v.needs
	if v.marked {
		needs = append(slices.Clip(needs), need{alternatives: [][]int{v.plan.marked}})
	}
	for _, n := range needs {
		chosen, of := v.best(n, k, key)
		all = all.or(of)
		for _, i := range chosen {
			if v.programs[i].status[k] > rule.Other {
				by = append(by, i)
			}
		}
	}
	return all, by
}

// best returns those programs of the best alternative on a kernel that are loaded there, with their verdict.
func (v *loaderView) best(n need, k int, key kernel.Key) (best []int, of kernelStatus) {
	for _, a := range n.alternatives {
		var loaded []int
		var w kernelStatus
		for _, i := range a {
			switch of := v.programs[i].on(k); v.loads(i, key) {
			case isLoaded:
				loaded, w = append(loaded, i), w.or(of)
			case mayBeLoaded: // a failure may not count
				loaded = append(loaded, i)
				w = w.or(kernelStatus{min(of.status, rule.Unknown), min(of.load, rule.Unknown)})
			}
		}
		switch {
		case len(loaded) == 0:
		case best == nil || w.better(of),
			w == of && w.status > rule.Other && v.arrival(loaded, k) < v.arrival(best, k):
			best, of = loaded, w
		}
	}
	return best, of
}

// arrival returns the first release that has everything that programs lack on a kernel, see Report.arrival.
func (v *loaderView) arrival(programs []int, k int) (all rule.Release) {
	for _, i := range programs {
		all = max(all, v.rows[i].arrival(k, v.excused))
	}
	return all
}

// all returns the programs whose verdict is least or worse.
func (v *loaderView) all(k int, least rule.Status) (list []int) {
	for i := range v.programs {
		if v.programs[i].on(k).status >= least {
			list = append(list, i)
		}
	}
	return list
}

// mapName returns the map that the finding is about, "" for none.
func mapName(f *rule.Finding) string {
	switch {
	case f.Code == rule.MapTypeMissing, f.Code == rule.MapTypeUnset:
		return f.Name
	case rule.FamilyOf(f.Code) == rule.FamilyMapDef:
		return f.Subject
	}
	return ""
}
