// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"fmt"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/pkg/kernel"
)

// Rule is the rule by which a kernel was found.
type Rule int

// The rules, in the order in which Lookup tries them.
const (
	NoMatch        Rule = iota // no kernel in the archive matches
	ExactMatch                 // distribution, version, arch and release are equal
	ReleaseMatch               // all kernels with this arch and release have the same BTF
	NeighbourMatch             // the builds next to the kernel have the same BTF
)

var ruleNames = [...]string{"none", "exact", "release", "neighbour"}

// String returns "none", "exact", "release" or "neighbour".
func (r Rule) String() string {
	if r < 0 || int(r) >= len(ruleNames) {
		return fmt.Sprintf("rule %d", int(r))
	}
	return ruleNames[r]
}

// Match is the result of a look-up.
type Match struct {
	Want kernel.Key // the kernel to find, canonical
	Rule Rule       // NoMatch for a miss
	Key  kernel.Key // the kernel whose BTF serves, as the archive spells it; zero for a miss

	// Reason says in one line why the kernel matches, or why no kernel does. For a
	// NeighbourMatch it has the number of builds that were compared, the first and the
	// last.
	Reason string

	// On a miss, Below and Above are the nearest releases of the same distribution and
	// arch, or zero. They are advice for people. SameLayout reports that both exist and
	// have the same BTF. The kernel between them probably has it too, but structs do
	// change within a series.
	Below, Above kernel.Key
	SameLayout   bool
}

// Found reports whether the lookup was a hit.
func (m Match) Found() bool { return m.Rule != NoMatch }

// Finder is a set of kernels with their BTF: an [*Archive] or a [*Tree]. Both are
// safe for use by many goroutines.
type Finder interface {
	// Lookup finds the kernel whose BTF serves a host. See [Archive.Lookup].
	Lookup(want kernel.Key, neighbours int) Match
	// BTF returns the BTF of exactly this kernel. The slice belongs to the caller.
	// The error is ErrNoKernel if the kernel is missing.
	BTF(k kernel.Key) ([]byte, error)
}

// Lookup finds the kernel whose BTF serves a host. It tries, in this order:
//
//  1. ExactMatch: the kernel with this key, in any spelling of distribution and
//     arch.
//  2. ReleaseMatch: the kernels of the same release and arch under other distributions
//     or versions, if all of them have the same BTF. A release identifies a build well
//     enough, while os-release may say "8.5" where the archive says "8", and derived
//     distributions ship the kernels of others.
//  3. NeighbourMatch, if neighbours is above 0, the key is Known and no kernel has its
//     release and arch: the last build before it in its series ([kernel.Key.Series]).
//     The nearest builds before it must have the same BTF, neighbours in number, and so
//     must as many builds after it, or all if there are fewer.
//
// Otherwise the Match is a miss. With 0 neighbours Lookup never returns another release.
// Structs do change within a series. So the BTF of a NeighbourMatch may be wrong, and
// programs then read wrong memory. docs/howto-tracers.md says how often that happens.
func (a *Archive) Lookup(want kernel.Key, neighbours int) Match {
	return a.dir.lookup(want, neighbours, func(i, j int) bool { return a.layoutOf[i] == a.layoutOf[j] })
}

// directory is the kernels of an archive or a tree, numbered from 0.
type directory struct {
	keys  []kernel.Key
	index map[kernel.Key]int // by canonical key
}

// add gives a kernel the next number. It reports false for a kernel that was added
// before, in any spelling.
func (d *directory) add(k kernel.Key) bool {
	c := k.Canonical()
	if _, ok := d.index[c]; ok {
		return false
	}
	d.index[c] = len(d.keys)
	d.keys = append(d.keys, k)
	return true
}

// find returns the number of exactly this kernel.
func (d *directory) find(k kernel.Key) (i int, ok bool) {
	i, ok = d.index[k.Canonical()]
	return i, ok
}

// sorted returns the kernels in order.
func (d *directory) sorted() []kernel.Key {
	keys := slices.Clone(d.keys)
	slices.SortFunc(keys, kernel.Key.Compare)
	return keys
}

// lookup is Archive.Lookup. same reports whether two kernels have the same BTF.
func (d *directory) lookup(want kernel.Key, neighbours int, same func(i, j int) bool) Match {
	m := Match{Want: want.Canonical()}
	if i, ok := d.index[m.Want]; ok {
		m.Rule, m.Key, m.Reason = ExactMatch, d.keys[i], "the archive has this kernel"
		return m
	}
	var others []int
	for i, k := range d.keys {
		if m.Want.Arch != "" && k.Release == m.Want.Release && kernel.CanonicalArch(k.Arch) == m.Want.Arch {
			others = append(others, i)
		}
	}
	if len(others) == 0 {
		d.advise(&m, same)
		if neighbours > 0 && m.Want.Known() {
			d.neighbours(&m, neighbours, same)
		}
		return m
	}
	for _, i := range others[1:] {
		if !same(others[0], i) {
			m.Reason = fmt.Sprintf("%s: %d other distributions have kernels of this release and arch, and their BTFs differ", m.distro(), len(others))
			d.advise(&m, same)
			return m
		}
	}
	m.Rule, m.Key = ReleaseMatch, d.keys[others[0]]
	m.Reason = fmt.Sprintf("not under %s, but another distribution has this release and arch", m.distro())
	return m
}

func (m *Match) distro() string {
	if m.Want.ID == "" {
		return "an unknown distribution"
	}
	return strings.TrimSuffix(m.Want.ID+" "+m.Want.VersionID, " ")
}

// around returns the kernels of a series with an earlier and with a later release, the
// nearest first.
func (d *directory) around(release string, inSeries func(kernel.Key) bool) (before, after []int) {
	for i, k := range d.keys {
		switch c := kernel.CompareVersions(k.Release, release); {
		case !inSeries(k.Canonical()):
		case c < 0:
			before = append(before, i)
		case c > 0:
			after = append(after, i)
		}
	}
	compare := func(i, j int) int { return kernel.CompareVersions(d.keys[i].Release, d.keys[j].Release) }
	slices.SortStableFunc(before, func(i, j int) int { return compare(j, i) })
	slices.SortStableFunc(after, compare)
	return before, after
}

// advise explains a miss and finds the nearest releases.
func (d *directory) advise(m *Match, same func(i, j int) bool) {
	id, arch := false, false
	before, after := d.around(m.Want.Release, func(k kernel.Key) bool {
		id, arch = id || k.ID == m.Want.ID, arch || k.Arch == m.Want.Arch
		return k.ID == m.Want.ID && k.Arch == m.Want.Arch
	})
	if len(before) > 0 {
		m.Below = d.keys[before[0]]
	}
	if len(after) > 0 {
		m.Above = d.keys[after[0]]
	}
	m.SameLayout = len(before) > 0 && len(after) > 0 && same(before[0], after[0])
	switch {
	case m.Reason != "":
	case m.Want.Release == "":
		m.Reason = "the release of the kernel is unknown"
	case m.Want.Arch == "":
		m.Reason = "the arch of the kernel is unknown"
	case len(before)+len(after) > 0:
		m.Reason = fmt.Sprintf("no kernel %s for %s", m.Want.Release, m.Want.Arch)
	case !arch:
		m.Reason = fmt.Sprintf("no kernels for %s", m.Want.Arch)
	case !id:
		m.Reason = fmt.Sprintf("no kernel %s for %s, and none of %s at all", m.Want.Release, m.Want.Arch, m.distro())
	default:
		m.Reason = fmt.Sprintf("no kernel %s for %s, and none of %s for that arch", m.Want.Release, m.Want.Arch, m.Want.ID)
	}
}

// neighbours turns a miss into a NeighbourMatch if the n builds before the kernel and
// up to n builds after it have the same BTF. Otherwise it adds why not to the reason.
func (d *directory) neighbours(m *Match, n int, same func(i, j int) bool) {
	series := m.Want.Series()
	before, after := d.around(m.Want.Release, func(k kernel.Key) bool { return k.Series() == series })
	if len(before) < n {
		m.Reason += fmt.Sprintf("; builds of its series before it: %d, want %d", len(before), n)
		return
	}
	before, after = before[:n], after[:min(n, len(after))]
	for _, i := range slices.Concat(before[1:], after) {
		if !same(before[0], i) {
			m.Reason += fmt.Sprintf("; the BTFs of the %d builds next to it differ", len(before)+len(after))
			return
		}
	}
	m.Rule, m.Key = NeighbourMatch, d.keys[before[0]]
	m.Below, m.Above, m.SameLayout = kernel.Key{}, kernel.Key{}, false
	slices.Reverse(before)
	m.Reason += fmt.Sprintf("; the builds next to it have one BTF: %s, %s", d.span(before, "before it"), d.span(after, "after it"))
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
