// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"cmp"
	"iter"
	"slices"

	"github.com/btfgen/btfgen/internal/btfa"
)

// The first allLayouts are compared with all layouts before them. A later one is
// compared with the recentLayouts before it and at most olderLayouts of the
// others, so that the time of Write grows linearly with the number of layouts.
const (
	allLayouts    = 1024
	recentLayouts = 256
	olderLayouts  = 64
)

// layoutSearch finds, for one layout after the other, an earlier one that differs
// from it in few slots.
type layoutSearch struct {
	p      *pool
	none   []int32         // the empty layout
	latest map[block]int32 // the last layout that has these variants
	votes  []int32         // by layout: the number of blocks whose latest layout it is
}

// block is the variants in slots that follow each other, from slot start on.
type block struct {
	start    int
	variants [8]int32
}

// blocks returns the variants of a layout, cut into blocks.
func blocks(variants []int32) iter.Seq[block] {
	return func(yield func(block) bool) {
		for start := 0; start < len(variants); start += len(block{}.variants) {
			b := block{start: start}
			copy(b.variants[:], variants[start:])
			if !yield(b) {
				return
			}
		}
	}
}

func newLayoutSearch(p *pool) *layoutSearch {
	return &layoutSearch{
		p: p, none: slices.Repeat([]int32{btfa.NoVariant}, len(p.slots)),
		latest: make(map[block]int32), votes: make([]int32, len(p.layouts)),
	}
}

// parent returns how many layouts before layout i the one is that it differs from
// in the fewest slots, or 0 for the empty layout; its variants; and the number of
// slots. It must be called for each layout in order.
func (f *layoutSearch) parent(i int) (back int, from []int32, fewest int) {
	to := f.p.layouts[i].variants
	from, fewest = f.none, changes(f.none, to, len(to)+1)
	try := func(j int) {
		o := f.p.layouts[j].variants
		if n := changes(o, to, fewest); n < fewest {
			back, from, fewest = i-j, o, n
		}
	}
	recent := 0
	if i >= allLayouts {
		recent = i - recentLayouts
	}
	for j := i - 1; j >= recent; j-- {
		try(j)
	}
	for _, j := range f.older(to, recent) {
		try(int(j))
	}
	for b := range blocks(to) {
		f.latest[b] = int32(i)
	}
	return back, from, fewest
}

// older returns the layouts before layout end that have most in common with these
// variants: that were the last to have the same blocks.
func (f *layoutSearch) older(variants []int32, end int) []int32 {
	if end == 0 {
		return nil
	}
	var found []int32
	for b := range blocks(variants) {
		j, ok := f.latest[b]
		if !ok || int(j) >= end {
			continue
		}
		if f.votes[j] == 0 {
			found = append(found, j)
		}
		f.votes[j]++
	}
	slices.SortFunc(found, func(a, b int32) int { return cmp.Or(cmp.Compare(f.votes[b], f.votes[a]), cmp.Compare(b, a)) })
	for _, j := range found {
		f.votes[j] = 0
	}
	return found[:min(len(found), olderLayouts)]
}

// changes counts the slots that differ, but not beyond limit.
func changes(a, b []int32, limit int) int {
	n := 0
	for i := range a {
		if a[i] != b[i] {
			if n++; n >= limit {
				break
			}
		}
	}
	return n
}
