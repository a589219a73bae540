// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/corpus/naming"
	"github.com/btfgen/btfgen/internal/text/suggest"
	"github.com/btfgen/btfgen/pkg/kernel"
)

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
