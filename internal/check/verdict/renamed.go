// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/check/rule"
)

// joinRenamed makes alternatives of programs whose names differ only as those of renamed functions do, if each works on a kernel
// and no kernel runs two: if all had to work, the object would work on no kernel.
func (e *evidence) joinRenamed() {
	groups := make(map[string][]need)
	var keys []string
	for _, n := range e.needs {
		if key := e.renamed(n); key != "" {
			if groups[key] == nil {
				keys = append(keys, key)
			}
			groups[key] = append(groups[key], n)
		}
	}
	for _, key := range keys {
		g := groups[key]
		if len(g) == 1 || len(g) > len(e.kernels) || !e.exclusive(g) {
			continue
		}
		var joined need
		for _, n := range g {
			joined.alternatives = append(joined.alternatives, n.alternatives...)
		}
		has := func(programs []int) bool {
			return slices.ContainsFunc(joined.alternatives, func(l []int) bool { return slices.Equal(l, programs) })
		}
		e.needs = append(slices.DeleteFunc(e.needs, func(n need) bool { return has(n.alternatives[0]) }), joined)
		e.rules = append(slices.DeleteFunc(e.rules, func(r Rule) bool { return has(r.Programs[0]) }),
			Rule{Kind: OneOf, Programs: joined.alternatives, Guess: Exclusive})
	}
}

// exclusive reports whether each need certainly works on a kernel, and no kernel runs two.
func (e *evidence) exclusive(needs []need) bool {
	works := make([]bool, len(needs))
	for k := range e.kernels {
		one := false
		for i, n := range needs {
			if e.status(n, k) <= rule.Guarded {
				if one {
					return false
				}
				one, works[i] = true, true
			}
		}
	}
	return !slices.Contains(works, false)
}

// renamed returns the place of a need's programs, which needs for other names of the function share: see place.
// It is "" if a rule of the user is about the need, or if its programs have several places.
func (e *evidence) renamed(n need) (shared string) {
	for _, i := range slices.Concat(n.alternatives...) {
		own := place(e.object, i)
		if n.said || len(e.when[i]) > 0 || shared != "" && own != shared {
			return ""
		}
		shared = own
	}
	return shared
}

// place names the place that a program is attached to: entry, exit, tracepoint or the prefix of its section, and the words of its
// target, else of its name. Names of a renamed function often differ in leading underscores, order, page and folio, and versions; place
// leaves these out.
func place(o *rule.Object, i int) string {
	pr, what, to := &o.Programs[i], "", o.ProgramName(i)
	if s := pr.Attach; s != nil {
		prefix := strings.TrimSuffix(s.Prefix, ".s")
		what = cmp.Or(attachPoints[prefix], prefix)
		if target := path.Base(s.Target(pr.Section)); target != "." && what != prefix {
			to = target
		}
	}
	var words []string
	for _, w := range strings.Split(stem(to), "_") {
		switch digits, version := strings.CutPrefix(w, "v"); {
		case w == "page":
			words = append(words, "folio")
		// v511, but not v4 and v6, which are protocols
		case version && len(digits) > 1 && strings.Trim(digits, "0123456789") == "":
		case w != "" && w != "old" && w != "new":
			words = append(words, w)
		}
	}
	slices.Sort(words)
	return fmt.Sprint(what, words)
}
