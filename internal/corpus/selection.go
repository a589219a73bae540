// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/corpus/selection"
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
	Selector selection.Selector
	Excludes bool   // the selector is one of Options.Exclude
	Nearest  string // alternatives, described by [selection.Nearest], or ""
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
			s.Unmatched = append(s.Unmatched, Unmatched{sel, i >= len(m.opts.Select), selection.Nearest(sel, slices.Values(keys))})
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
