// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/corpus/selection"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Policy is what users know of how their objects are loaded, and no object says.
// The zero Policy leaves it to guesses.
type Policy struct {
	choices []choice
	Exact   bool // what is not said is not guessed
}

// Option is an option of a policy.
type Option struct {
	Name  string `json:"option"`
	Value string `json:"value"`
}

// String returns the option as a command line has it.
func (o Option) String() string { return fmt.Sprintf("--%s %s", o.Name, o.Value) }

// The options of policies.
const (
	optional  = "optional"   // programs without which the object works
	oneOf     = "one-of"     // alternatives; one has to work, with all its programs
	when      = "when"       // programs that are loaded on some kernels only
	loaderMap = "loader-map" // maps whose type and sizes the loader sets
)

// choice is an option of a policy, parsed.
type choice struct {
	Option
	alternatives []pattern          // of one-of, else one
	kernels      selection.Selector // of when
}

// pattern chooses programs or maps by their name, and by that of their object where it says one; or whole objects.
type pattern struct {
	object string // a glob of the object's name, "" for every object
	names  []string
	whole  []string // globs of the names of objects; then there is nothing else
}

// Add adds [OBJECT:]NAME, where both may have *, ? and [], as an option: optional, one-of, when or loader-map. An alternative of
// several programs is NAME+NAME. one-of has commas between its alternatives, and when ends with =SELECTOR. For when and one-of, OBJECT:
// is a whole object, and an alternative of several objects is OBJECT:+OBJECT:.
func (p *Policy) Add(option, value string) (err error) {
	c := choice{Option: Option{option, value}}
	names := value
	if option == when {
		var sel string
		var ok bool
		if names, sel, ok = strings.Cut(value, "="); !ok {
			return errors.New("want [OBJECT:]NAME=SELECTOR")
		}
		if c.kernels, err = selection.Parse(sel); err != nil {
			return fmt.Errorf("selector %q: %w", sel, err)
		}
	}
	if (option == when || option == oneOf) && strings.HasSuffix(names, ":") {
		if c.alternatives, err = wholeObjects(names); err == nil {
			err = c.checkCount()
		}
		if err == nil {
			p.choices = append(p.choices, c)
		}
		return err
	}
	object := ""
	if i := strings.LastIndexByte(names, ':'); i >= 0 {
		if object, names = names[:i], names[i+1:]; object == "" {
			return errors.New("no name of an object before the colon")
		}
	}
	list := []string{names}
	if option == oneOf {
		list = strings.Split(names, ",")
	}
	for _, text := range list {
		g := pattern{object: object, names: strings.Split(strings.TrimSpace(text), "+")}
		for _, glob := range append(slices.Clip(g.names), object) {
			if _, err := path.Match(glob, ""); err != nil {
				return err
			}
		}
		if slices.Contains(g.names, "") {
			return errors.New("want [OBJECT:]NAME")
		}
		c.alternatives = append(c.alternatives, g)
	}
	if err := c.checkCount(); err != nil {
		return err
	}
	p.choices = append(p.choices, c)
	return nil
}

// checkCount returns an error if the option has too few or too many alternatives.
func (c *choice) checkCount() error {
	switch n := len(c.alternatives); {
	case c.Name == oneOf && n < 2:
		return errors.New("want two or more alternatives with commas between them")
	case c.Name == when && n > 1:
		return errors.New("want one object before the selector")
	}
	return nil
}

// wholeObjects parses alternatives of whole objects.
func wholeObjects(text string) (list []pattern, err error) {
	for alternative := range strings.SplitSeq(text, ",") {
		var g pattern
		for name := range strings.SplitSeq(strings.TrimSpace(alternative), "+") {
			glob, ok := strings.CutSuffix(name, ":")
			if !ok || glob == "" {
				return nil, errors.New("want OBJECT: for each of the objects")
			}
			if _, err := path.Match(glob, ""); err != nil {
				return nil, err
			}
			g.whole = append(g.whole, glob)
		}
		list = append(list, g)
	}
	return list, nil
}

// of returns the choices of an option.
func (p *Policy) of(option string) iter.Seq[choice] {
	return func(yield func(choice) bool) {
		for _, c := range p.choices {
			if c.Name == option && !yield(c) {
				return
			}
		}
	}
}

// about reports whether the pattern is about an object. The name may lack
// its directories and the !#1 of an embedded object.
func (g *pattern) about(o *rule.Object) bool {
	if g.whole != nil {
		return slices.ContainsFunc(g.whole, func(glob string) bool { return isNamed(o, glob) })
	}
	return g.object == "" || isNamed(o, g.object)
}

// isNamed reports whether a glob matches the name of an object, see about.
func isNamed(o *rule.Object, glob string) bool {
	whole, _, _ := strings.Cut(o.Name(), "!")
	return slices.ContainsFunc([]string{o.Name(), path.Base(o.Name()), whole, path.Base(whole)}, func(n string) bool { return matches(glob, n) })
}

// matches reports whether the pattern chooses a program or map of an object.
func (g *pattern) matches(o *rule.Object, name string) bool {
	return g.about(o) && slices.ContainsFunc(g.names, func(glob string) bool { return matches(glob, name) })
}

// programs returns the programs of an object that the pattern chooses, ascending.
func (g *pattern) programs(o *rule.Object) (list []int) {
	for i := range o.Programs {
		if g.matches(o, o.ProgramName(i)) {
			list = append(list, i)
		}
	}
	return list
}

// spares reports whether the user says that an object works without its program i.
func (p *Policy) spares(o *rule.Object, i int) bool {
	for c := range p.of(optional) {
		if c.alternatives[0].matches(o, o.ProgramName(i)) {
			return true
		}
	}
	return false
}

// SetsMap reports whether the loader sets up a map of an object.
func (p *Policy) SetsMap(o *rule.Object, name string) bool {
	for c := range p.of(loaderMap) {
		if c.alternatives[0].matches(o, name) {
			return true
		}
	}
	return false
}

// Unmatched returns the options of the policy with a pattern that matches no object, program or map.
func (p *Policy) Unmatched(objects []*rule.Object) (out []Option) {
	for _, c := range p.choices {
		for _, g := range c.alternatives {
			if !slices.ContainsFunc(objects, func(o *rule.Object) bool {
				if g.whole != nil {
					return g.about(o)
				}
				if c.Name == loaderMap {
					return slices.ContainsFunc(mapNames(o), func(m string) bool { return g.matches(o, m) })
				}
				return len(g.programs(o)) > 0
			}) && !slices.Contains(out, c.Option) {
				out = append(out, c.Option)
			}
		}
	}
	return out
}

func mapNames(o *rule.Object) (names []string) {
	for i := range o.Maps {
		names = append(names, o.Maps[i].Name)
	}
	for _, m := range o.StructOps {
		names = append(names, m.Name)
	}
	return names
}

// plan is which programs of an object have to work. Indices are those of Object.Programs.
type plan struct {
	needs  []need
	marked []int // those with a ? in SEC that no rule is about; libbpf does not load them
	when   map[int][]selection.Selector
	whole  []selection.Selector // of the object
	spare  []int                // those that only a ? in SEC excludes
	rules  []Rule
}

// need is alternatives, of which one has to work with all its programs.
type need struct {
	alternatives [][]int
	said         bool // by the user
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

// planFor puts together what the policy says of an object, what its sections say and, unless the policy
// is exact, what can be guessed.
func (p *Policy) planFor(o *rule.Object) *plan {
	pl := &planner{&plan{when: make(map[int][]selection.Selector)}, o, make(map[int]bool)}
	for i := range o.Programs {
		pl.free[i] = true
	}
	pl.follow(p)
	if !p.Exact {
		pl.guess()
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
	free map[int]bool // programs without a rule so far; OnlyWhen does not count
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
func (pl *planner) guess() {
	for _, k := range substitutes(pl.o, pl.free) {
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

// substitute is programs that do the same in several ways.
type substitute struct {
	alternatives [][]int
	guess        Guess
	at           string // of SameTarget
}

// substitutes finds programs that do the same, attached in different ways. Loaders choose
// one: libbpf-tools have a tp_btf beside a raw_tp, and a kprobe beside a fentry.
func substitutes(o *rule.Object, free map[int]bool) []substitute {
	same := groupByName(o, free, func(i int) (name, at string) { return point(o, i) })
	left := maps.Clone(free)
	for _, k := range same {
		for _, i := range slices.Concat(k.alternatives...) {
			delete(left, i)
		}
	}
	return append(same, groupByName(o, left, func(i int) (name, at string) { return strings.TrimSuffix(o.ProgramName(i), "_btf"), "" })...)
}

// point is what a program is attached to, as far as several ways lead there: a name for it, "" for none, and what reports call it,
// "" where only the programs' names are equal.
func point(o *rule.Object, i int) (name, at string) {
	pr := &o.Programs[i]
	what := attachPoints[strings.TrimSuffix(pr.Attach.Prefix, ".s")]
	if what == "" {
		return "", ""
	}
	to := path.Base(pr.Attach.Target(pr.Section))
	switch {
	case to == ".": // of nothing
		return what + "/" + stem(o.ProgramName(i)), ""
	case what == tracepoint:
		return what + " " + to, what + " " + to
	}
	return what + " " + stem(to), "the " + what + " of " + to
}

// groupByName puts programs of the same name together where they are attached in different ways. A way is one alternative.
func groupByName(o *rule.Object, of map[int]bool, name func(i int) (name, at string)) (out []substitute) {
	at := make(map[string]int)
	var ways [][]string // of the alternatives
	for i := range o.Programs {
		s := o.Programs[i].Attach
		if !of[i] || s == nil {
			continue
		}
		n, to := name(i)
		if n == "" {
			continue
		}
		k, ok := at[n]
		if !ok {
			k = len(out)
			at[n] = k
			of := substitute{guess: SameName, at: to}
			if to != "" {
				of.guess = SameTarget
			}
			out, ways = append(out, of), append(ways, nil)
		}
		way := s.ProgType + " " + s.Type
		a := slices.Index(ways[k], way)
		if a < 0 {
			a = len(ways[k])
			ways[k], out[k].alternatives = append(ways[k], way), append(out[k].alternatives, nil)
		}
		out[k].alternatives[a] = append(out[k].alternatives[a], i)
	}
	return slices.DeleteFunc(out, func(k substitute) bool { return len(k.alternatives) < 2 })
}

const tracepoint = "tracepoint"

// attachPoints are what programs are run at, by the prefixes of the sections that say it in different ways.
var attachPoints = map[string]string{
	"kprobe": "entry", "kprobe.multi": "entry", "fentry": "entry",
	"kretprobe": "exit", "kretprobe.multi": "exit", "fexit": "exit",
	"tp": tracepoint, "tracepoint": tracepoint, "raw_tp": tracepoint, "raw_tracepoint": tracepoint, "tp_btf": tracepoint,
}

// stem returns a name without the words for how a program is attached.
func stem(name string) string {
	words := strings.Split(name, "_")
	words = slices.DeleteFunc(words, func(w string) bool {
		return slices.Contains([]string{"fentry", "fexit", "kprobe", "kretprobe"}, w)
	})
	return strings.Join(words, "_")
}

// matches reports whether a glob matches a name.
func matches(pattern, name string) bool {
	ok, _ := path.Match(pattern, name)
	return ok
}
