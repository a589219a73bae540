package archive

import (
	"fmt"
	"strings"

	"github.com/btfgen/btfgen/pkg/kernel"
)

// Rule is how a kernel was found.
type Rule int

// The rules, in the order in which Lookup tries them.
const (
	NoMatch      Rule = iota // the archive does not have the kernel
	ExactMatch               // distribution, version, arch and release are the same
	ReleaseMatch             // only arch and release are the same, and that leaves one BTF
)

var ruleNames = [...]string{"none", "exact", "release"}

// String returns "none", "exact" or "release".
func (r Rule) String() string { return ruleNames[r] }

// Match is the outcome of a lookup.
type Match struct {
	Want kernel.Key // what was looked for, canonical
	Rule Rule       // NoMatch for a miss
	Key  kernel.Key // the kernel that was found, as the archive has it; zero for a miss

	// Reason says in one line why this kernel, or why none.
	Reason string

	// Below and Above are, on a miss, the nearest releases of the same
	// distribution and arch that the archive has; zero if there is none. They
	// are advice for people. SameLayout says that both are there and have the
	// same BTF: the kernel between them is likely to have it too, but
	// distributions do change structs in the middle of a series.
	Below, Above kernel.Key
	SameLayout   bool
}

// Found reports whether the lookup was a hit.
func (m Match) Found() bool { return m.Rule != NoMatch }

// Lookup finds the kernel of a host. In this order:
//
//  1. The kernel with exactly this key, whatever the spelling of distribution
//     and arch.
//  2. A kernel of the same release and arch under another distribution or
//     version, if all that there are have the same BTF: releases are specific
//     enough to name a build, while os-release says "8.5" where the corpus has
//     "8", and derived distributions ship kernels of others.
//  3. None. A near release is never taken for an answer, because offsets may
//     differ and programs would read wrong memory.
func (a *Archive) Lookup(want kernel.Key) Match {
	m := Match{Want: want.Canonical()}
	if i, ok := a.index[m.Want]; ok {
		m.Rule, m.Key, m.Reason = ExactMatch, a.keys[i], "the archive has this kernel"
		return m
	}
	var same []int
	for i, k := range a.keys {
		if m.Want.Arch != "" && k.Release == m.Want.Release && kernel.CanonicalArch(k.Arch) == m.Want.Arch {
			same = append(same, i)
		}
	}
	for _, i := range same {
		if a.layoutOf[i] != a.layoutOf[same[0]] {
			m.Reason = fmt.Sprintf("%s: %d other distributions have kernels of this release and arch, and their BTFs differ", m.distro(), len(same))
			a.advise(&m)
			return m
		}
	}
	if len(same) > 0 {
		m.Rule, m.Key = ReleaseMatch, a.keys[same[0]]
		m.Reason = fmt.Sprintf("not under %s, but the same release and arch is there", m.distro())
		return m
	}
	a.advise(&m)
	return m
}

func (m *Match) distro() string {
	if m.Want.ID == "" {
		return "an unknown distribution"
	}
	return strings.TrimSuffix(m.Want.ID+" "+m.Want.VersionID, " ")
}

// advise explains a miss and looks for the nearest releases.
func (a *Archive) advise(m *Match) {
	var below, above = -1, -1
	id, arch, both := false, false, false
	for i, k := range a.keys {
		k = k.Canonical()
		id = id || k.ID == m.Want.ID
		arch = arch || k.Arch == m.Want.Arch
		if k.ID != m.Want.ID || k.Arch != m.Want.Arch {
			continue
		}
		both = true
		c := kernel.CompareVersions(k.Release, m.Want.Release)
		if c < 0 && (below < 0 || kernel.CompareVersions(k.Release, a.keys[below].Release) > 0) {
			below = i
		}
		if c > 0 && (above < 0 || kernel.CompareVersions(k.Release, a.keys[above].Release) < 0) {
			above = i
		}
	}
	if below >= 0 {
		m.Below = a.keys[below]
	}
	if above >= 0 {
		m.Above = a.keys[above]
	}
	m.SameLayout = below >= 0 && above >= 0 && a.layoutOf[below] == a.layoutOf[above]
	switch {
	case m.Reason != "":
	case m.Want.Release == "":
		m.Reason = "the release of the kernel is not known"
	case m.Want.Arch == "":
		m.Reason = "the arch of the kernel is not known"
	case both:
		m.Reason = fmt.Sprintf("no kernel %s for %s", m.Want.Release, m.Want.Arch)
	case !arch:
		m.Reason = fmt.Sprintf("no kernels for %s", m.Want.Arch)
	case !id:
		m.Reason = fmt.Sprintf("no kernel %s for %s, and none of %s at all", m.Want.Release, m.Want.Arch, m.distro())
	default:
		m.Reason = fmt.Sprintf("no kernel %s for %s, and none of %s for that arch", m.Want.Release, m.Want.Arch, m.Want.ID)
	}
}
