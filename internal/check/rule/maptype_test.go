// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/check/facts"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/testinput"
)

// TestKnownMapTypes compares the table with every kernel at hand.
func TestKnownMapTypes(t *testing.T) {
	raceflag.SkipSerial(t)
	n := 0
	testinput.Each(t, testinput.Corpus(t), func(it *corpus.Kernel) {
		names := inspectItem(t, it, &Wanted{names: make(map[string]int)}).enums[facts.EnumMap]
		numbers := make(map[uint64]bool)
		for name, v := range names {
			if !strings.HasPrefix(name, facts.MapPrefix) {
				continue
			}
			numbers[v] = true
			if got, ok := names[facts.MapTypeName(uint32(v))]; !ok && !strings.HasSuffix(name, "_DEPRECATED") || ok && got != v {
				t.Errorf("%s: %d is %s, not %s", it.Name, v, name, facts.MapTypeName(uint32(v)))
			}
		}
		n = max(n, len(numbers))
	})
	if n != facts.MapTypes {
		t.Errorf("the kernels have %d types, the table %d", n, facts.MapTypes)
	}
}
