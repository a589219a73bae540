// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/corpus/naming"
	"github.com/btfgen/btfgen/internal/text/suggest"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Selection is the result of the selectors of Options.
type Selection struct {
	// Unmatched are the selectors that match no kernel: those of Select, then those of Exclude.
	Unmatched []Unmatched

	// Unread is the number of files without a key in their path that were not read. They may have what Unmatched lacks.
	Unread int
}

// Unmatched is a selector that matches no kernel.
type Unmatched struct {
	Selector Selector
	Excludes bool   // of Options.Exclude
	Nearest  string // what there is instead, as [Nearest] says it
}

// Selection returns the result of the selectors for kernels that do not come from a corpus.
func (o *Options) Selection(keys iter.Seq[kernel.Key]) Selection {
	m := newMet(o)
	for k := range keys {
		m.note(k)
	}
	return m.selection()
}

func (m *met) selection() (s Selection) {
	if m == nil {
		return s
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s.Unread = len(m.unread)
	var keys []kernel.Key // sorted if they are needed, as there may be many
	for i, sel := range m.all {
		if !m.matched[i] {
			if keys == nil {
				keys = slices.SortedFunc(maps.Keys(m.keys), kernel.Key.Compare)
			}
			s.Unmatched = append(s.Unmatched, Unmatched{sel, i >= len(m.opts.Select), Nearest(sel, slices.Values(keys))})
		}
	}
	return s
}

// nothing describes the selectors that match no kernel, with alternatives.
func (s Selection) nothing() string {
	var all []string
	for _, u := range s.Unmatched {
		text := u.Selector.String() + " matches none"
		if u.Nearest != "" {
			text += " (" + u.Nearest + ")"
		}
		all = append(all, text)
	}
	if len(all) == 0 {
		return ""
	}
	return ": " + strings.Join(all, ", ")
}

// nearby is how many values Nearest names.
const nearby = 4

// Nearest describes alternatives for a selector that matches no kernel, such as "nearest by version: 12, 13". These are values of the first
// part of a key that does not match, of the kernels for which most terms match. It returns "" without such kernels.
func Nearest(s Selector, keys iter.Seq[kernel.Key]) string {
	most, missed := -1, term{}
	var values []string
	for k := range keys {
		n, miss := s.agree(k)
		if n < most || n == len(s.terms) {
			continue
		}
		if n > most {
			most, missed, values = n, miss, nil
		}
		if v := missed.field.of(k); v != "" && miss == missed && !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return ""
	}
	what := [...]string{"distribution", "version", "architecture", "release"}[missed.field]
	return fmt.Sprintf("nearest by %s: %s", what, strings.Join(missed.nearest(values), ", "))
}

// agree returns how many terms match, and the first that does not.
func (s Selector) agree(k kernel.Key) (n int, miss term) {
	for _, t := range s.terms {
		if t.match(k) {
			n++
		} else if miss == (term{}) {
			miss = t
		}
	}
	return n, miss
}

// nearest returns the few values that are next to what the term wants.
func (t term) nearest(values []string) []string {
	if t.field == fieldID || t.field == fieldArch || !naming.Numbered(t.value) {
		suggest.Sort(t.value, values)
		return values[:min(len(values), nearby)]
	}
	slices.SortFunc(values, kernel.CompareVersions)
	at, _ := slices.BinarySearchFunc(values, t.value, kernel.CompareVersions)
	from := max(0, min(at-nearby/2, len(values)-nearby))
	return values[from:min(len(values), from+nearby)]
}
