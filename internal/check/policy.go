// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Policy is what users know of how their objects are loaded, and no object says.
// The zero Policy leaves it to guesses.
type Policy struct {
	Optional []Pattern   // programs without which the object works
	OneOf    []Choice    // alternatives; one has to work
	When     []Condition // programs that are loaded on some kernels only
	Maps     []Pattern   // maps whose type and sizes the loader sets
	Exact    bool        // what is not said is not guessed
}

// Pattern chooses programs or maps by their name, and by that of their object where it says one.
type Pattern struct {
	text   string
	object string // a glob of the object's name, "" for every object
	names  []string
}

// ParsePattern reads [OBJECT:]NAME, where both may have *, ? and [].
func ParsePattern(text string) (Pattern, error) {
	p := Pattern{text: text}
	name := text
	if i := strings.LastIndexByte(text, ':'); i >= 0 {
		p.object, name = text[:i], text[i+1:]
		if p.object == "" {
			return p, errors.New("no name of an object before the colon")
		}
	}
	p.names = strings.Split(name, "+")
	for _, g := range append(p.names, p.object) {
		if _, err := path.Match(g, ""); err != nil {
			return p, err
		}
	}
	if slices.Contains(p.names, "") {
		return p, errors.New("want [OBJECT:]NAME")
	}
	return p, nil
}

// about reports whether the pattern is about an object. The name may lack
// its directories and the !#1 of an embedded object.
func (p *Pattern) about(o *Object) bool {
	if p.object == "" {
		return true
	}
	whole, _, _ := strings.Cut(o.name, "!")
	return slices.ContainsFunc([]string{o.name, path.Base(o.name), whole, path.Base(whole)}, func(n string) bool { return matches(p.object, n) })
}

func (p *Pattern) matches(name string) bool {
	return slices.ContainsFunc(p.names, func(g string) bool { return matches(g, name) })
}

// programs returns the programs of an object that the pattern chooses, ascending.
func (p *Pattern) programs(o *Object) (list []int) {
	for i := range o.Programs {
		if p.about(o) && p.matches(o.programName(i)) {
			list = append(list, i)
		}
	}
	return list
}

// Choice is alternatives. One has to work, with all its programs.
type Choice struct {
	text         string
	alternatives []Pattern
}

// ParseChoice reads [OBJECT:]NAME,NAME..., in which an alternative of several programs is
// NAME+NAME or has a *.
func ParseChoice(text string) (Choice, error) {
	c := Choice{text: text}
	object, names := "", text
	if i := strings.LastIndexByte(text, ':'); i >= 0 {
		object, names = text[:i+1], text[i+1:]
	}
	for name := range strings.SplitSeq(names, ",") {
		p, err := ParsePattern(object + strings.TrimSpace(name))
		if err != nil {
			return c, err
		}
		c.alternatives = append(c.alternatives, p)
	}
	if len(c.alternatives) < 2 {
		return c, errors.New("want two or more alternatives with commas between them")
	}
	return c, nil
}

// Condition says on which kernels programs are loaded.
type Condition struct {
	Pattern
	kernels corpus.Selector
}

// ParseCondition reads [OBJECT:]NAME=SELECTOR.
func ParseCondition(text string) (Condition, error) {
	name, sel, ok := strings.Cut(text, "=")
	if !ok {
		return Condition{}, errors.New("want [OBJECT:]NAME=SELECTOR")
	}
	p, err := ParsePattern(name)
	if err != nil {
		return Condition{}, err
	}
	p.text = text
	s, err := corpus.ParseSelector(sel)
	return Condition{p, s}, err
}

// Add adds a value of an option by its name: optional, one-of, when or loader-map.
func (p *Policy) Add(option, value string) error {
	switch option {
	case "one-of":
		c, err := ParseChoice(value)
		p.OneOf = append(p.OneOf, c)
		return err
	case "when":
		c, err := ParseCondition(value)
		p.When = append(p.When, c)
		return err
	}
	g, err := ParsePattern(value)
	if option == "optional" {
		p.Optional = append(p.Optional, g)
	} else {
		p.Maps = append(p.Maps, g)
	}
	return err
}

// setsMap reports whether the loader sets up a map of an object.
func (p *Policy) setsMap(o *Object, name string) bool {
	return slices.ContainsFunc(p.Maps, func(g Pattern) bool { return g.about(o) && g.matches(name) })
}

// Unmatched returns, by option, the patterns of the policy that match no object, program or map.
func (p *Policy) Unmatched(objects []*Object) map[string][]string {
	out := make(map[string][]string)
	check := func(option string, g Pattern, text string) {
		if !slices.ContainsFunc(objects, func(o *Object) bool {
			if option == "loader-map" {
				return g.about(o) && slices.ContainsFunc(o.mapNames(), g.matches)
			}
			return len(g.programs(o)) > 0
		}) && !slices.Contains(out[option], text) {
			out[option] = append(out[option], text)
		}
	}
	for _, g := range p.Optional {
		check("optional", g, g.text)
	}
	for _, c := range p.OneOf {
		for _, g := range c.alternatives {
			check("one-of", g, c.text)
		}
	}
	for _, c := range p.When {
		check("when", c.Pattern, c.text)
	}
	for _, g := range p.Maps {
		check("loader-map", g, g.text)
	}
	return out
}

func (o *Object) mapNames() (names []string) {
	for i := range o.Maps {
		names = append(names, o.Maps[i].Name)
	}
	for _, m := range o.StructOps.Maps {
		names = append(names, m.Name)
	}
	return names
}

// plan is which programs of an object have to work. Indices are those of Object.Programs.
type plan struct {
	needs  []need
	marked []int // those with a ? in SEC that no rule is about; libbpf does not load them
	when   map[int][]corpus.Selector
	rules  []Rule
}

// need is alternatives, of which one has to work with all its programs.
type need struct {
	alternatives [][]int
	said         bool // by the user
	joined       bool // from needs that look like alternatives
}

// loads reports whether a program is loaded on a kernel.
func (p *plan) loads(program int, k kernel.Key) bool {
	l := p.when[program]
	return len(l) == 0 || slices.ContainsFunc(l, func(s corpus.Selector) bool { return s.Match(k) })
}

// planFor puts together what the policy says of an object, what its sections say and, unless the policy
// is exact, what can be guessed.
func (p *Policy) planFor(o *Object) *plan {
	pl := &planner{&plan{when: make(map[int][]corpus.Selector)}, o, make(map[int]bool)}
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
			pl.marked = append(pl.marked, i)
		default:
			pl.needs = append(pl.needs, need{alternatives: [][]int{{i}}})
		}
	}
	return pl.plan
}

// planner makes a plan.
type planner struct {
	*plan
	o    *Object
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
	for _, g := range p.Optional {
		pl.rule(Optional, "", "", pl.open(g.programs(pl.o)))
	}
	for _, c := range p.OneOf {
		var alternatives [][]int
		for _, g := range c.alternatives {
			alternatives = append(alternatives, pl.open(g.programs(pl.o)))
		}
		pl.rule(OneOf, "", "", alternatives...)
	}
	for _, c := range p.When {
		l := c.programs(pl.o)
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
	for _, k := range pl.o.substitutes(pl.free) {
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
	}
	var elsewhere []int
	for i := range pl.o.Programs {
		pr := &pl.o.Programs[i]
		if s := pr.Attach; pl.free[i] && s != nil && s.Kind == bpfobj.AttachTP {
			if _, some := unnumbered[systemCall(s.Target(pr.Section))]; some {
				elsewhere = append(elsewhere, i)
			}
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
func (o *Object) substitutes(free map[int]bool) []substitute {
	same := o.groupByName(free, o.point)
	left := maps.Clone(free)
	for _, k := range same {
		for _, i := range slices.Concat(k.alternatives...) {
			delete(left, i)
		}
	}
	return append(same, o.groupByName(left, func(i int) (name, at string) { return strings.TrimSuffix(o.programName(i), "_btf"), "" })...)
}

// point is what a program is attached to, as far as several ways lead there: a name for it, "" for none, and what reports call it,
// "" where only the programs' names are equal.
func (o *Object) point(i int) (name, at string) {
	pr := &o.Programs[i]
	what := attachPoints[strings.TrimSuffix(pr.Attach.Prefix, ".s")]
	if what == "" {
		return "", ""
	}
	to := path.Base(pr.Attach.Target(pr.Section))
	switch {
	case to == ".": // of nothing
		return what + "/" + stem(o.programName(i)), ""
	case what == tracepoint:
		return what + " " + to, what + " " + to
	}
	return what + " " + stem(to), "the " + what + " of " + to
}

func (o *Object) programName(i int) string { return o.Funcs[o.Programs[i].Fn].Name }

// alike puts programs of the same name together where they are attached in different ways. A way is one alternative.
func (o *Object) groupByName(of map[int]bool, name func(i int) (name, at string)) (out []substitute) {
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
