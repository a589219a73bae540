// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"path"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/pkg/relo"
)

// Filter chooses entries. An empty list takes all; of several lists all have
// to take an entry. Names may be patterns as in [path.Match], and malformed ones match no entry.
type Filter struct {
	Programs []string      // functions or sections
	Results  []relo.Result // exact
	Types    []string      // local types, flavors included, with or without "struct", "union" or "enum"
}

// Match reports whether the filter takes an entry.
func (f *Filter) Match(e *relo.Entry) bool {
	if len(f.Results) > 0 && !slices.Contains(f.Results, e.Result) {
		return false
	}
	if len(f.Programs) > 0 && !matchAny(f.Programs, e.Program, e.Section) {
		return false
	}
	return len(f.Types) == 0 || matchAny(f.Types, typeNames(e)...)
}

// typeNames returns the names by which a filter can select the local type.
func typeNames(e *relo.Entry) []string {
	_, name, ok := strings.Cut(e.Local.Type, " ")
	if !ok {
		name = e.Local.Type
	}
	essential, _, _ := strings.Cut(name, "___")
	return []string{e.Local.Type, name, essential}
}

// without returns the filter with those patterns that do not match the entry.
func (f Filter) without(e *relo.Entry) Filter {
	if len(f.Programs) > 0 {
		f.Programs = slices.DeleteFunc(f.Programs, func(p string) bool { return matchAny([]string{p}, e.Program, e.Section) })
	}
	if len(f.Types) > 0 {
		names := typeNames(e)
		f.Types = slices.DeleteFunc(f.Types, func(p string) bool { return matchAny([]string{p}, names...) })
	}
	return f
}

// matchAny matches slashes by "*" as well, since sections have some.
func matchAny(patterns []string, names ...string) bool {
	for _, p := range patterns {
		p = strings.ReplaceAll(p, "/", "\x00")
		for _, n := range names {
			if ok, _ := path.Match(p, strings.ReplaceAll(n, "/", "\x00")); ok && n != "" {
				return true
			}
		}
	}
	return false
}
