// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/btfa"
)

// TestLayoutSearch looks for the parents of layouts that differ from one far
// before them in a few slots, and from all others in nearly every slot.
func TestLayoutSearch(t *testing.T) {
	const slots, variants, n = 60, 50, 3 * allLayouts
	r := rand.New(rand.NewPCG(3, 4))
	p := &pool{slots: make([]poolSlot, slots)}
	for s := range p.slots {
		p.slots[s].variants = make([]variant, variants)
	}
	like := make(map[int]int) // layout: the one that it was made from
	for i := range n {
		l := poolLayout{variants: make([]int32, slots)}
		for s := range l.variants {
			l.variants[s] = int32(r.IntN(variants+1)) - 1
		}
		if i > 10 && i%100 == 0 {
			from := r.IntN(i)
			l.variants, like[i] = slices.Clone(p.layouts[from].variants), from
			for s := range 3 {
				l.variants[s*20] = btfa.NoVariant
			}
		}
		p.layouts = append(p.layouts, l)
	}
	search := newLayoutSearch(p)
	far := 0
	for i := range p.layouts {
		back, from, fewest := search.parent(i)
		want := p.layouts[i].variants
		if n := changes(from, want, slots+1); n != fewest {
			t.Fatalf("layout %d: %d changes, said %d", i, n, fewest)
		}
		if back > 0 && &from[0] != &p.layouts[i-back].variants[0] {
			t.Fatalf("layout %d: not the one %d back", i, back)
		}
		if at, ok := like[i]; ok {
			if fewest > 3 {
				t.Errorf("layout %d: %d changes, 3 from layout %d", i, fewest, at)
			}
			if i-at > recentLayouts && i > allLayouts {
				far++
			}
		}
	}
	if far < 5 {
		t.Errorf("only %d layouts whose parent is far before", far)
	}
}
