// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"fmt"
	"slices"

	"github.com/btfgen/btfgen/pkg/kernel"
)

// neighbours turns a miss into a NeighbourMatch if the n builds before the kernel and
// up to n builds after it have the same BTF. Otherwise it adds why not to the reason.
func (d *directory) neighbours(m *Match, n int, same func(i, j int) bool) {
	var before, after []int // the nearest first
	series := m.Want.Series()
	for i, k := range d.keys {
		switch {
		case k.Series() != series:
		case kernel.CompareVersions(k.Release, m.Want.Release) < 0:
			before = append(before, i)
		default:
			after = append(after, i)
		}
	}
	if len(before) < n {
		m.Reason += fmt.Sprintf("; builds of its series before it: %d, want %d", len(before), n)
		return
	}
	nearest := func(i, j int) int { return kernel.CompareVersions(d.keys[i].Release, d.keys[j].Release) }
	slices.SortFunc(before, func(i, j int) int { return nearest(j, i) })
	slices.SortFunc(after, nearest)
	before, after = before[:n], after[:min(n, len(after))]
	for _, i := range slices.Concat(before[1:], after) {
		if !same(before[0], i) {
			m.Reason += fmt.Sprintf("; the BTFs of the %d builds next to it differ", len(before)+len(after))
			return
		}
	}
	slices.Reverse(before)
	m.Reason += fmt.Sprintf("; the builds next to it have one BTF: %s, %s", d.span(before, "before it"), d.span(after, "after it"))
	m.Rule, m.Key = NeighbourMatch, d.keys[before[n-1]]
	m.Below, m.Above, m.SameLayout = kernel.Key{}, kernel.Key{}, false
}

// span describes the builds on one side: their number, the first and the last.
func (d *directory) span(builds []int, side string) string {
	switch n := len(builds); n {
	case 0:
		return "none " + side
	case 1:
		return fmt.Sprintf("1 %s (%s)", side, d.keys[builds[0]].Release)
	default:
		return fmt.Sprintf("%d %s (%s … %s)", n, side, d.keys[builds[0]].Release, d.keys[builds[n-1]].Release)
	}
}
