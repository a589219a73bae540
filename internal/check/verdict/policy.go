// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/corpus/selection"
)

// Policy is what users know of how their objects are loaded, and no object says.
// The zero Policy leaves it to guesses.
type Policy struct {
	choices []choice
	Exact   bool // make no guesses
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
	oneOf     = "one-of"     // alternatives: one has to work, with all its programs
	when      = "when"       // programs that are loaded on some kernels only
	loaderMap = "loader-map" // maps whose type and sizes the loader sets

	tailCalled = "tail-called" // programs that only tail calls reach
)

// choice is an option of a policy, parsed.
type choice struct {
	Option
	alternatives []pattern          // several for one-of, else one
	kernels      selection.Selector // kernels of when
}

// pattern chooses programs or maps by their name, and by that of their object where it says one; or whole objects.
type pattern struct {
	object string // glob of the object's name, "" for every object
	names  []string
	whole  []string // globs of objects' names, for whole objects; the other fields are empty then
}

// Add adds [OBJECT:]NAME, where both may have *, ? and [], as an option: optional, one-of, when, loader-map or tail-called. An alternative
// of several programs is NAME+NAME. one-of has commas between its alternatives, and when ends with =SELECTOR. For when and one-of, OBJECT:
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
		c.alternatives, err = wholeObjects(names)
	} else {
		c.alternatives, err = namesIn(names, option == oneOf)
	}
	if err == nil {
		err = c.checkCount()
	}
	if err != nil {
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

// namesIn parses [OBJECT:]NAME, or several alternatives with commas between their names.
func namesIn(text string, several bool) (list []pattern, err error) {
	object := ""
	if i := strings.LastIndexByte(text, ':'); i >= 0 {
		if object, text = text[:i], text[i+1:]; object == "" {
			return nil, errors.New("no name of an object before the colon")
		}
	}
	alternatives := []string{text}
	if several {
		alternatives = strings.Split(text, ",")
	}
	for _, a := range alternatives {
		g := pattern{object: object, names: strings.Split(strings.TrimSpace(a), "+")}
		for _, glob := range append(slices.Clip(g.names), object) {
			if _, err := path.Match(glob, ""); err != nil {
				return nil, err
			}
		}
		if slices.Contains(g.names, "") {
			return nil, errors.New("want [OBJECT:]NAME")
		}
		list = append(list, g)
	}
	return list, nil
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
	names := []string{o.Name(), path.Base(o.Name()), whole, path.Base(whole)}
	return slices.ContainsFunc(names, func(n string) bool { return matches(glob, n) })
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

// TailCalled reports whether only tail calls reach program i of an object, as the user says or the object shows.
func (p *Policy) TailCalled(o *rule.Object, i int) bool {
	for c := range p.of(tailCalled) {
		if c.alternatives[0].matches(o, o.ProgramName(i)) {
			return true
		}
	}
	return o.TailCalled(i)
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

// matches reports whether a glob matches a name.
func matches(pattern, name string) bool {
	ok, _ := path.Match(pattern, name)
	return ok
}
