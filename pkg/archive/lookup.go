// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"fmt"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Rule is the rule by which a kernel was found.
type Rule int

// The rules. [Archive.Lookup] has their order.
const (
	NoMatch        Rule = iota // no kernel in the archive matches
	ExactMatch                 // distribution, version, arch and release are equal
	ReleaseMatch               // all kernels with this arch and release have the same BTF
	NeighbourMatch             // the builds next to the kernel have the same BTF
	DerivedMatch               // a distribution that the host's is derived from has this arch and release
)

var ruleNames = [...]string{"none", "exact", "release", "neighbour", "derived"}

// String returns "none", "exact", "release", "derived" or "neighbour".
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

	// Reason says in one line of printable text why the kernel matches, or why no kernel does. For a
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

// Lookup finds the kernel whose BTF serves a host, which [kernel.Host] describes. want is its key, and like has the
// distributions that it is derived from. Lookup tries, in this order:
//
//  1. ExactMatch: the kernel with this key, in any spelling of distribution and
//     arch.
//  2. ReleaseMatch: the kernels of the same release and arch under other versions of the distribution. os-release may
//     say "8.5" where the archive says "8". A version that names one build is left out ([kernel.Key.OneBuild]).
//  3. DerivedMatch: the kernels of the same release and arch under the first distribution of like that has any: the
//     one of the version in like, or all. Derived distributions ship the kernels of others.
//  4. ReleaseMatch: the kernels of the same release and arch under any distribution.
//  5. NeighbourMatch, if neighbours is above 0 and the key is Known: the last build before it in its series
//     ([kernel.Key.Series]). The nearest builds before it must have the same BTF, neighbours in number, and so
//     must as many builds after it, or all if there are fewer.
//
// In steps 2 to 4 all kernels must have the same BTF, else the Match is a miss. Steps 3 and 4 need a release that
// identifies a build ([kernel.Key.Distinctive]): many distributions have a 5.10.135, each with its own configuration. They
// leave out kernels that the host's distribution or theirs has built under a common name ([kernel.Key.BuiltBy]).
//
// Otherwise the Match is a miss. With 0 neighbours Lookup never returns another release.
// Structs do change within a series. So the BTF of a NeighbourMatch may be wrong, and
// programs then read wrong memory. docs/howto-tracers.md says how often that happens.
func (a *Archive) Lookup(want kernel.Key, neighbours int, like ...kernel.Key) Match {
	m := a.lookup(want, neighbours, like)
	m.Reason = btfa.Printable(m.Reason)
	return m
}

func (a *Archive) lookup(want kernel.Key, neighbours int, like []kernel.Key) Match {
	m := Match{Want: want.Canonical()}
	if i, ok := a.index[m.Want]; ok {
		m.Rule, m.Key, m.Reason = ExactMatch, a.keys[i], "the archive has this kernel"
		return m
	}
	var own, others []int
	for i, k := range a.keys {
		switch k := k.Canonical(); {
		case m.Want.Arch == "" || k.Release != m.Want.Release || k.Arch != m.Want.Arch:
		case k.ID == m.Want.ID && !k.OneBuild():
			own = append(own, i)
		default:
			others = append(others, i)
		}
	}
	usable := slices.DeleteFunc(slices.Clone(others), func(i int) bool {
		k := a.keys[i].Canonical()
		return !k.Distinctive() || k.BuiltBy(k.ID) || k.BuiltBy(m.Want.ID)
	})
	switch {
	case len(own) > 0:
		a.choose(&m, ReleaseMatch, own)
	case a.derived(&m, others, like):
	case len(usable) > 0:
		a.choose(&m, ReleaseMatch, usable)
	default:
		a.advise(&m)
		if len(others) > 0 {
			m.Reason += fmt.Sprintf("; %s has this release, which may be another build", distro(a.keys[others[0]]))
		}
		if neighbours > 0 && m.Want.Known() {
			a.neighbours(&m, neighbours)
		}
	}
	return m
}

// derived chooses among the kernels of a distribution that the host's is derived from. It reports whether there is any.
func (a *Archive) derived(m *Match, others []int, like []kernel.Key) bool {
	if !m.Want.Distinctive() || m.Want.BuiltBy(m.Want.ID) {
		return false
	}
	for _, l := range like {
		var of, exact []int
		for _, i := range others {
			k := a.keys[i]
			if kernel.CanonicalID(k.ID) != l.ID {
				continue
			}
			of = append(of, i)
			if l.VersionID != "" && k.VersionID == l.VersionID {
				exact = append(exact, i)
			}
		}
		if len(exact) > 0 {
			of = exact
		}
		if len(of) > 0 {
			a.choose(m, DerivedMatch, of)
			return true
		}
	}
	return false
}

// choose takes the first of some kernels, if all of them have the same BTF. Otherwise the match is a miss.
func (a *Archive) choose(m *Match, rule Rule, of []int) {
	first := a.keys[of[0]]
	for _, i := range of[1:] {
		if !a.same(of[0], i) {
			m.Reason = fmt.Sprintf("%s: %s and %s have this release and arch, and their BTFs differ", distro(m.Want), distro(first), distro(a.keys[i]))
			a.advise(m)
			return
		}
	}
	m.Rule, m.Key = rule, first
	m.Reason = fmt.Sprintf("not under %s, but %s has this release and arch", distro(m.Want), distro(first))
	if rule == DerivedMatch {
		m.Reason = fmt.Sprintf("%s is derived from %s, which has this release and arch", distro(m.Want), distro(first))
	}
}

// same reports whether two kernels have the same BTF.
func (a *Archive) same(i, j int) bool { return a.layoutOf[i] == a.layoutOf[j] }

func distro(k kernel.Key) string {
	if k.ID == "" {
		return "an unknown distribution"
	}
	return strings.TrimSuffix(kernel.CanonicalID(k.ID)+" "+k.VersionID, " ")
}

// around returns the kernels of a series with an earlier and with a later release, the
// nearest first.
func (a *Archive) around(release string, inSeries func(kernel.Key) bool) (before, after []int) {
	for i, k := range a.keys {
		switch c := kernel.CompareVersions(k.Release, release); {
		case !inSeries(k.Canonical()):
		case c < 0:
			before = append(before, i)
		case c > 0:
			after = append(after, i)
		}
	}
	compare := func(i, j int) int { return kernel.CompareVersions(a.keys[i].Release, a.keys[j].Release) }
	slices.SortStableFunc(before, func(i, j int) int { return compare(j, i) })
	slices.SortStableFunc(after, compare)
	return before, after
}

// advise explains a miss and finds the nearest releases.
func (a *Archive) advise(m *Match) {
	id, arch := false, false
	before, after := a.around(m.Want.Release, func(k kernel.Key) bool {
		id, arch = id || k.ID == m.Want.ID, arch || k.Arch == m.Want.Arch
		return k.ID == m.Want.ID && k.Arch == m.Want.Arch
	})
	if len(before) > 0 {
		m.Below = a.keys[before[0]]
	}
	if len(after) > 0 {
		m.Above = a.keys[after[0]]
	}
	m.SameLayout = len(before) > 0 && len(after) > 0 && a.same(before[0], after[0])
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
		m.Reason = fmt.Sprintf("no kernel %s for %s, and none of %s at all", m.Want.Release, m.Want.Arch, distro(m.Want))
	default:
		m.Reason = fmt.Sprintf("no kernel %s for %s, and none of %s for that arch", m.Want.Release, m.Want.Arch, m.Want.ID)
	}
}

// neighbours turns a miss into a NeighbourMatch if the n builds before the kernel and
// up to n builds after it have the same BTF. Otherwise it adds why not to the reason.
func (a *Archive) neighbours(m *Match, n int) {
	series := m.Want.Series()
	before, after := a.around(m.Want.Release, func(k kernel.Key) bool { return k.Series() == series })
	if len(before) < n {
		m.Reason += fmt.Sprintf("; builds of its series before it: %d, want %d", len(before), n)
		return
	}
	before, after = before[:n], after[:min(n, len(after))]
	for _, i := range slices.Concat(before[1:], after) {
		if !a.same(before[0], i) {
			m.Reason += fmt.Sprintf("; the BTFs of the %d builds next to it differ", len(before)+len(after))
			return
		}
	}
	m.Rule, m.Key = NeighbourMatch, a.keys[before[0]]
	m.Below, m.Above, m.SameLayout = kernel.Key{}, kernel.Key{}, false
	slices.Reverse(before)
	m.Reason += fmt.Sprintf("; the builds next to it have one BTF: %s, %s", a.span(before, "before it"), a.span(after, "after it"))
}

// span describes the builds on one side: their number, the first and the last.
func (a *Archive) span(builds []int, side string) string {
	switch n := len(builds); n {
	case 0:
		return "none " + side
	case 1:
		return fmt.Sprintf("1 %s (%s)", side, a.keys[builds[0]].Release)
	default:
		return fmt.Sprintf("%d %s (%s … %s)", n, side, a.keys[builds[0]].Release, a.keys[builds[n-1]].Release)
	}
}
