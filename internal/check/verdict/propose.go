// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/btfgen/btfgen/internal/check/rule"
)

// Proposal is options for objects whose names differ in a version: the loader seems to take one of them. Whether it does, only the user
// knows.
type Proposal struct {
	Options []Option
	Now     ObjectRow // the objects together, which are all needed without the options
	Row     ObjectRow // row of the variants, or of the only object, with the options
}

// versionName is an object's name without the word in which variants differ.
type versionName struct {
	object int
	rest   string
	word   string       // "v511", "core", "legacy", or "" for none
	from   rule.Release // 5.11 for v511; 0 for other words
}

// versionNameOf splits the name of an object.
func versionNameOf(object int, name string) (v versionName) {
	v.object = object
	name = path.Base(name)
	words := strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("_-.", r) })
	i := slices.IndexFunc(words, func(w string) bool { return releaseOfWord(w) != 0 })
	if i < 0 {
		i = slices.IndexFunc(words, func(w string) bool { return w == "core" || w == "legacy" })
	}
	if i >= 0 {
		v.word, v.from = words[i], releaseOfWord(words[i])
		words = slices.Delete(words, i, i+1)
	}
	v.rest = strings.Join(words, " ")
	return v
}

// releaseOfWord returns 5.11 for v511, and 0 for other words. v4 and v6 are protocols.
func releaseOfWord(word string) rule.Release {
	digits, ok := strings.CutPrefix(word, "v")
	if !ok || len(digits) < 2 || len(digits) > 3 {
		return 0
	}
	n, err := strconv.ParseUint(digits[1:], 10, 8)
	if err != nil || digits[0] < '3' || digits[0] > '9' {
		return 0
	}
	return rule.Release(uint64(digits[0]-'0')<<16 | n<<8)
}

// propose returns the options for objects whose names differ in a version, and for single objects with one.
func (v *judge) propose() (all []Proposal) {
	groups := make(map[string][]versionName)
	var order []string
	for i, o := range v.Setup.Objects {
		n := versionNameOf(i, o.Name())
		if groups[n.rest] == nil {
			order = append(order, n.rest)
		}
		groups[n.rest] = append(groups[n.rest], n)
	}
	said := make(map[int]bool) // objects that options of the user are about
	for i, o := range v.Setup.Objects {
		said[i] = slices.ContainsFunc(v.Policy.choices, func(c choice) bool {
			return slices.ContainsFunc(c.alternatives, func(g pattern) bool { return g.whole != nil && g.about(o) })
		})
	}
	for _, rest := range order {
		g := groups[rest]
		slices.SortStableFunc(g, func(a, b versionName) int {
			return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.word, b.word))
		})
		if !slices.ContainsFunc(g, func(n versionName) bool { return said[n.object] }) {
			all = append(all, v.proposals(g)...)
		}
	}
	return all
}

// proposals returns a proposal for objects with names that have the same rest, or none.
func (v *judge) proposals(g []versionName) []Proposal {
	if !areVersions(g) {
		return nil
	}
	whens := v.whenReleased(g)
	if len(g) == 1 {
		now := v.Report.Objects[g[0].object].Status
		if whens == nil || !slices.Contains(now, rule.Fails) {
			return nil
		}
		if p, ok := v.proposal(whens, g); ok && !v.loses(now, p.Row.Status) {
			return []Proposal{p}
		}
		return nil
	}
	var alternatives []string
	for _, n := range g {
		alternatives = append(alternatives, patternOf(v.Setup.Objects[n.object])+":")
	}
	choice := Option{oneOf, strings.Join(alternatives, ",")}
	plain, ok := v.proposal([]Option{choice}, g)
	if !ok {
		return nil
	}
	if whens != nil {
		exact, ok := v.proposal(append([]Option{choice}, whens...), g)
		if ok && !v.loses(plain.Row.Status, exact.Row.Status) {
			return []Proposal{exact}
		}
	}
	return []Proposal{plain}
}

// areVersions reports whether sorted names with the same rest seem to be versions of one tool. Objects whose words are equal may be
// different tools, or one tool for several machines, and so may a core without a legacy beside it.
func areVersions(g []versionName) bool {
	legacy := slices.ContainsFunc(g, func(n versionName) bool { return n.word == "legacy" })
	for i, n := range g {
		if n.word == "core" && !legacy || i > 0 && n.word == g[i-1].word {
			return false
		}
	}
	return true
}

// whenReleased returns an option for each object whose name, or the next one's, has a release: it is loaded from its own release on, and
// before the next one's.
func (v *judge) whenReleased(g []versionName) (options []Option) {
	for i, n := range g {
		var limits []string
		if n.from != 0 {
			limits = append(limits, ">="+n.from.String())
		}
		if i+1 < len(g) && g[i+1].from != n.from {
			limits = append(limits, "<"+g[i+1].from.String())
		}
		if limits != nil {
			object := patternOf(v.Setup.Objects[n.object])
			options = append(options, Option{when, object + ":=" + strings.Join(limits, ",")})
		}
	}
	return options
}

// loses reports whether something that works on a kernel of a known release does not with other options, or is not loaded there.
func (r *Report) loses(now, with []rule.Status) bool {
	for k, s := range now {
		if r.Kernels[k].release() != 0 && s <= rule.Guarded && with[k] > rule.Guarded {
			return true
		}
	}
	return false
}

// proposal returns the options with the row that they give. It reports whether the options say something of these objects, and of no others.
func (v *judge) proposal(options []Option, g []versionName) (out Proposal, ok bool) {
	p, err := v.Policy.with(options)
	if err != nil {
		return out, false
	}
	rep := &Report{Kernels: v.Kernels, Programs: v.Programs}
	var objects []*rule.Object
	for _, n := range g {
		row, _ := v.objectRow(n.object, &p)
		rep.Objects, objects = append(rep.Objects, row), append(objects, v.Setup.Objects[n.object])
	}
	for i, o := range v.Setup.Objects {
		about := slices.ContainsFunc(p.choices[len(v.Policy.choices):], func(c choice) bool {
			return slices.ContainsFunc(c.alternatives, func(g pattern) bool { return g.about(o) })
		})
		if about != slices.ContainsFunc(g, func(n versionName) bool { return n.object == i }) {
			return out, false
		}
	}
	out = Proposal{Options: options, Row: rep.Objects[0]}
	if groups := p.variantsOf(objects); len(g) > 1 {
		if len(groups) != 1 || len(groups[0]) != len(g) {
			return out, false
		}
		out.Row = rep.variants(groups[0])
	}
	for n, x := range g {
		o := v.Report.Objects[x.object]
		if n == 0 {
			out.Now = ObjectRow{Status: slices.Clone(o.Status), Load: slices.Clone(o.Load)}
		}
		for k := range o.Status {
			out.Now.Status[k], out.Now.Load[k] = both(out.Now.Status[k], o.Status[k]), both(out.Now.Load[k], o.Load[k])
		}
	}
	out.Now.Object = out.Row.Object
	return out, !slices.Equal(out.Now.Status, out.Row.Status)
}
