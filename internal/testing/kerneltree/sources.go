// SPDX-License-Identifier: Apache-2.0

package kerneltree

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// sourceText says where sources show the facts of the tables.
//
//go:embed sources.txt
var sourceText string

// source is one way to see a fact. All patterns have to agree.
type source struct {
	fact     string
	file     *regexp.Regexp // nil: where is a function
	where    string
	patterns []*regexp.Regexp
	not      []bool // the pattern must not be there
}

var sources = sync.OnceValue(func() (l []source) {
	for line := range strings.Lines(sourceText) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		c := strings.Split(line, "\t")
		c = slices.DeleteFunc(c, func(s string) bool { return s == "" })
		if len(c) < 3 {
			panic(fmt.Sprintf("%s: want fact, place and patterns", line))
		}
		s := source{fact: c[0], where: c[1]}
		if strings.Contains(c[1], "/") {
			s.file = regexp.MustCompile("^" + c[1] + "$")
		}
		for _, p := range c[2:] {
			p, not := strings.CutPrefix(p, "!")
			s.patterns, s.not = append(s.patterns, regexp.MustCompile(p)), append(s.not, not)
		}
		l = append(l, s)
	}
	return l
})

// Facts returns the facts for which sources.txt has patterns.
func Facts() (l []string) {
	for _, s := range sources() {
		l = append(l, s.fact)
	}
	return l
}

// has reports whether one file, or one definition of the function, agrees with all patterns.
func (t *Tree) has(s source) bool {
	agrees := func(text string) bool {
		for i, p := range s.patterns {
			if p.MatchString(text) == s.not[i] {
				return false
			}
		}
		return true
	}
	if s.file == nil {
		return slices.ContainsFunc(t.defs.functions[strings.TrimSuffix(s.where, "()")], agrees)
	}
	for name, text := range t.texts {
		if s.file.MatchString(name) && agrees(text) {
			return true
		}
	}
	return false
}
