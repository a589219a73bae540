// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"maps"
	"slices"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/corpus/selection"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// plan is which programs of an object have to work. Indices are those of Object.Programs.
type plan struct {
	needs  []need
	marked []int // programs with a ? in SEC that no rule is about; libbpf does not load them
	when   map[int][]selection.Selector
	whole  []selection.Selector // selectors of the whole object
	spare  []int                // programs that only a ? in SEC excludes
	rules  []Rule
}

// need is alternatives. One has to work with all its programs.
type need struct {
	alternatives [][]int
	said         bool // the user says so
}

// loadState says whether something is loaded on a kernel.
type loadState uint8

const (
	isLoaded loadState = iota
	mayBeLoaded
	isNotLoaded
)

// loads says whether a program is loaded on a kernel. It may be if the kernel's key lacks what decides.
func (p *plan) loads(program int, k kernel.Key) loadState {
	return max(onKernel(p.whole, k), onKernel(p.when[program], k))
}

// onKernel says whether one of some selectors chooses a kernel, if there are any.
func onKernel(l []selection.Selector, k kernel.Key) loadState {
	switch {
	case len(l) == 0 || slices.ContainsFunc(l, func(s selection.Selector) bool { return s.Match(k) }):
		return isLoaded
	case slices.ContainsFunc(l, func(s selection.Selector) bool { return s.Undecided(k) }):
		return mayBeLoaded
	}
	return isNotLoaded
}

// loadsAny says whether a program of the object is loaded on a kernel. One that only its section excludes does not count, unless
// all are like that.
func (p *plan) loadsAny(programs int, k kernel.Key) loadState {
	least := onKernel(p.whole, k)
	if len(p.when) == 0 {
		return least
	}
	some := isNotLoaded
	for i := range programs {
		if !slices.Contains(p.spare, i) {
			some = min(some, p.loads(i, k))
		}
	}
	return max(least, some)
}

// planFor makes the plan for an object from the policy, the object's sections and, unless the policy is
// exact, guesses.
func (p *Policy) planFor(o *rule.Object) *plan {
	pl := &planner{&plan{when: make(map[int][]selection.Selector)}, o, make(map[int]bool)}
	for i := range o.Programs {
		pl.free[i] = true
	}
	pl.follow(p)
	if !p.Exact {
		pl.guess(p)
	}
	for i := range o.Programs {
		switch {
		case !pl.free[i]:
		case pl.isMarked(i):
			pl.marked, pl.spare = append(pl.marked, i), append(pl.spare, i)
		default:
			pl.needs = append(pl.needs, need{alternatives: [][]int{{i}}})
		}
	}
	return pl.plan
}

// planner makes a plan.
type planner struct {
	*plan
	o    *rule.Object
	free map[int]bool // programs without a rule so far, apart from OnlyWhen
}

// open returns the free ones of some programs.
func (pl *planner) open(list []int) (l []int) {
	for _, i := range list {
		if pl.free[i] {
			l = append(l, i)
		}
	}
	return l
}

// isMarked reports whether only its section says that a program is not loaded.
func (pl *planner) isMarked(i int) bool { return !pl.o.Programs[i].AutoLoad && len(pl.when[i]) == 0 }

// rule adds a rule that settles its programs.
func (pl *planner) rule(kind RuleKind, guess Guess, at string, lists ...[]int) {
	lists = slices.DeleteFunc(lists, func(l []int) bool { return len(l) == 0 })
	if len(lists) == 0 {
		return
	}
	if kind == OneOf {
		pl.needs = append(pl.needs, need{alternatives: lists, said: guess == ""})
	}
	pl.rules = append(pl.rules, Rule{Kind: kind, Programs: lists, Guess: guess, At: at})
	for _, i := range slices.Concat(lists...) {
		delete(pl.free, i)
	}
}

// follow adds what a policy says. What comes first counts.
func (pl *planner) follow(p *Policy) {
	for c := range p.of(optional) {
		pl.rule(Optional, "", "", pl.open(c.alternatives[0].programs(pl.o)))
	}
	for c := range p.of(oneOf) {
		if c.alternatives[0].whole != nil {
			continue // see variants
		}
		var alternatives [][]int
		for _, g := range c.alternatives {
			alternatives = append(alternatives, pl.open(g.programs(pl.o)))
		}
		pl.rule(OneOf, "", "", alternatives...)
	}
	for c := range p.of(when) {
		if g := c.alternatives[0]; g.whole != nil {
			if g.about(pl.o) {
				pl.whole = append(pl.whole, c.kernels)
				pl.rules = append(pl.rules, Rule{Kind: OnlyWhen, Programs: [][]int{}, When: c.kernels.String()})
			}
			continue
		}
		l := c.alternatives[0].programs(pl.o)
		for _, i := range l {
			pl.when[i] = append(pl.when[i], c.kernels)
		}
		if len(l) > 0 {
			pl.rules = append(pl.rules, Rule{Kind: OnlyWhen, Programs: [][]int{l}, When: c.kernels.String()})
		}
	}
}

// guess adds what may be so of programs that no rule is about.
func (pl *planner) guess(p *Policy) {
	attached := maps.Clone(pl.free)
	maps.DeleteFunc(attached, func(i int, _ bool) bool { return p.TailCalled(pl.o, i) })
	for _, k := range substitutes(pl.o, attached) {
		if slices.ContainsFunc(slices.Concat(k.alternatives...), func(i int) bool { return !pl.isMarked(i) }) {
			pl.rule(OneOf, k.guess, k.at, k.alternatives...)
		}
	}
	var marked []int
	var each [][]int
	for i := range pl.o.Programs {
		if pl.free[i] && pl.isMarked(i) {
			marked, each = append(marked, i), append(each, []int{i})
		}
	}
	if len(marked) == len(pl.o.Programs) {
		pl.rule(OneOf, AllMarked, "", each...)
	} else {
		pl.rule(Optional, Marked, "", marked)
		pl.spare = marked
	}
	var elsewhere []int
	for i := range pl.o.Programs {
		if pl.free[i] && rule.OnSomeMachines(&pl.o.Programs[i]) {
			elsewhere = append(elsewhere, i)
		}
	}
	if len(elsewhere) < len(pl.o.Programs) {
		pl.rule(Optional, SomeMachine, "", elsewhere)
	}
}
