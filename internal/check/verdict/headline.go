// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/pkg/kernel"
	"github.com/btfgen/btfgen/pkg/relo"
)

// Headline sums an object's row up. The kernels that count are those that
// the object is for.
type Headline struct {
	Since      string         `json:"since,omitempty"` // "5.8": it works from this release on, except on Exceptions; "" if there is none
	Gap        string         `json:"gap,omitempty"`   // "5.4": the newest release here before Since, if releases between the two may be as good; "" if there are none
	Until      string         `json:"until,omitempty"` // the last release on which it works, "" if later ones are none on which it fails
	Works      int            `json:"works"`           // kernels on which it is ok or guarded
	MayFail    int            `json:"may_fail"`        // kernels on which it may fail or that is unknown
	Total      int            `json:"total"`
	Unloaded   int            `json:"not_loaded,omitempty"` // kernels on which it is not loaded; Total is without them
	Lacks      []Lack         `json:"lacks,omitempty"`      // why it fails on other releases, what costs most kernels first
	Defects    []rule.Finding `json:"defects,omitempty"`    // for which loaders do not load the object, whatever the kernel; without sources
	Exceptions []Exception    `json:"exceptions,omitempty"` // kernels on which it is the other way round, by distribution and machine
}

// NeverLoaded reports whether the object is for some kernels, and is loaded on none of these.
func (h *Headline) NeverLoaded() bool { return h.Total == 0 && h.Unloaded > 0 }

// Count adds the verdict on one kernel.
func (h *Headline) Count(s rule.Status) {
	switch {
	case s == rule.Unloaded:
		h.Unloaded++
		return
	case s == rule.Other:
		return
	case s <= rule.Guarded:
		h.Works++
	case s < rule.Fails:
		h.MayFail++
	}
	h.Total++
}

// Lack is something for which an object fails.
type Lack struct {
	Family  rule.Family `json:"family"`
	Subject string      `json:"subject"`           // as of Finding; of FamilyRunning the file in which a kernel has BTF of its own
	Came    string      `json:"came,omitempty"`    // the release that it came with, "" if that is not known
	Seen    string      `json:"seen,omitempty"`    // where Came is not known: the oldest release here after those that lack it
	Newer   bool        `json:"newer,omitempty"`   // releases after Headline.Until lack it, not those before Since
	Differs bool        `json:"differs,omitempty"` // they have it, and not as the object declares it
	Refused bool        `json:"refused,omitempty"` // they have it, and do not allow what the object does with it
	Kernels int         `json:"kernels"`           // how many lack it
}

// Exception is kernels of one distribution and machine that contradict Headline: the object
// works on them although they are outside of its releases, or fails although they are inside.
type Exception struct {
	Family  string `json:"family"` // "rhel x86_64"
	Works   bool   `json:"works"`
	Kernels []int  `json:"kernels"`         // by release
	Lacks   []Lack `json:"lacks,omitempty"` // why it fails there, what costs most kernels first
}

// Family is what kernels that are alike have in common, distribution and machine: "debian x86_64".
// It is "" if the name does not show it.
func (k *Column) Family() string {
	c := k.Key().Canonical()
	if !c.Known() {
		return ""
	}
	return c.ID + " " + c.Arch
}

func (k *Column) release() rule.Release { return rule.ReleaseOf(k.Key()) }

// Release is the kernel's release of Linux without its patch level, "6.1", or "" if the name does not show it.
func (k *Column) Release() string {
	if v := k.release(); v != 0 {
		return v.String()
	}
	return ""
}

// axis is the kernels of a report by release and family.
type axis struct {
	*Report
	releases []rule.Release // by kernel, without the patch level; 0 if the name does not show it
	families []string       // by kernel
	numbers  []int          // of the families, by kernel
}

func (r *Report) axis() *axis {
	a := &axis{Report: r}
	number := make(map[string]int)
	for k := range r.Kernels {
		f := cmp.Or(r.Kernels[k].Family(), r.Kernels[k].Name)
		if _, ok := number[f]; !ok {
			number[f] = len(number)
		}
		a.families, a.numbers = append(a.families, f), append(a.numbers, number[f])
		a.releases = append(a.releases, r.Kernels[k].release())
	}
	return a
}

// headline sums a row up.
func (r *axis) headline(row *ObjectRow) (h Headline) {
	for _, s := range row.Status {
		h.Count(s)
	}
	good := r.goodReleases(row, h.Works > 0)
	if last := r.lastLoaded(row); good != never && good.last == 0 && last >= good.first {
		good.last = last
	}
	older := func(k int) bool { return good == never || r.releases[k] != 0 && r.releases[k] < good.first }
	var all rule.Release
	h.Lacks, all = r.lacks(row, older)
	h.Defects = r.defects(row)
	h.Exceptions = r.exceptions(row, good)
	if good != never {
		newest := r.newestBefore(row, good.first)
		if all > newest && all < good.first { // the report has no kernel of that release
			good.first = all
		} else if newest != 0 && !newest.IsNext(good.first) {
			h.Gap = newest.String()
		}
		h.Since = good.first.String()
	}
	if good.last != 0 {
		h.Until = good.last.String()
		newer, _ := r.lacks(row, func(k int) bool { return r.releases[k] > good.last })
		for _, l := range newer {
			l.Newer, l.Seen, l.Came = true, "", ""
			h.Lacks = append(h.Lacks, l)
		}
	}
	return h
}

// span is the releases from first to last; a last of 0 is no end.
type span struct{ first, last rule.Release }

var never = span{first: ^rule.Release(0)}

func (s span) has(v rule.Release) bool { return v >= s.first && (s.last == 0 || v <= s.last) }

// lastLoaded returns the newest release on which an object is loaded, if it is not loaded on all kernels of newer releases, else 0.
func (r *axis) lastLoaded(row *ObjectRow) (last rule.Release) {
	newest := rule.Release(0)
	for k, s := range row.Status {
		switch {
		case s.Judged():
			last = max(last, r.releases[k])
		case s == rule.Unloaded:
			newest = max(newest, r.releases[k])
		}
	}
	if newest <= last {
		return 0
	}
	return last
}

// goodReleases describes best on which kernels the object works or, if it certainly works on none, does not fail:
// the fewest families of kernels, then the fewest kernels, then the fewest that fail are exceptions. A
// last release counts as one more, so that a single kernel does not make one.
func (r *axis) goodReleases(row *ObjectRow, certain bool) span {
	works := func(s rule.Status) bool { return s <= rule.Guarded || !certain && s > rule.Other && s < rule.Fails }
	var firsts []rule.Release
	newest := make([]rule.Release, len(r.Kernels)) // on which it works, by number of the family
	for k, s := range row.Status {
		if v := r.releases[k]; v != 0 && works(s) {
			firsts = append(firsts, v)
			newest[r.numbers[k]] = max(newest[r.numbers[k]], v)
		}
	}
	lasts := []rule.Release{0}
	for k, s := range row.Status {
		if v := newest[r.numbers[k]]; s == rule.Fails && v != 0 && v < r.releases[k] {
			lasts = append(lasts, v) // the family has newer kernels on which it does not
		}
	}
	slices.Sort(firsts)
	slices.Sort(lasts)
	lasts = slices.Compact(lasts)
	best := never
	least := r.cost(row, never, works)
	least[2] = len(r.Kernels) + 1 // rather a release on which it works than none
	for _, first := range slices.Compact(firsts) {
		for _, last := range lasts {
			if last != 0 && last < first {
				continue
			}
			if c := r.cost(row, span{first, last}, works); slices.Compare(c[:], least[:]) < 0 {
				best, least = span{first, last}, c
			}
		}
	}
	return best
}

// odd reports whether a kernel is not as its release says. One on which the object may fail is odd at most
// where works says that it counts as working.
func (r *axis) odd(row *ObjectRow, good span, k int, works func(rule.Status) bool) bool {
	v, s := r.releases[k], row.Status[k]
	return v != 0 && (works(s) && !good.has(v) || s == rule.Fails && good.has(v))
}

// cost is how many families and kernels are odd, and how many of the kernels fail.
func (r *axis) cost(row *ObjectRow, good span, works func(rule.Status) bool) (c [3]int) {
	if good.last != 0 {
		c = [3]int{1, 1, 1}
	}
	seen := make([]bool, len(r.Kernels))
	for k := range r.Kernels {
		if !r.odd(row, good, k, works) {
			continue
		}
		if f := r.numbers[k]; !seen[f] {
			seen[f] = true
			c[0]++
		}
		c[1]++
		if row.Status[k] == rule.Fails {
			c[2]++
		}
	}
	return c
}

// exceptions are the kernels that are odd, and those of unknown release that fail if there are good releases.
func (r *axis) exceptions(row *ObjectRow, good span) (out []Exception) {
	for k := range r.Kernels {
		works := row.Status[k] != rule.Fails
		undated := r.releases[k] == 0 && !works && good != never
		if !undated && !r.odd(row, good, k, func(s rule.Status) bool { return s <= rule.Guarded }) {
			continue
		}
		i := slices.IndexFunc(out, func(x Exception) bool { return x.Family == r.families[k] && x.Works == works })
		if i < 0 {
			i = len(out)
			out = append(out, Exception{Family: r.families[k], Works: works})
		}
		out[i].Kernels = append(out[i].Kernels, k)
	}
	for i := range out {
		x := &out[i]
		if !x.Works {
			x.Lacks, _ = r.lacks(row, func(k int) bool { return slices.Contains(x.Kernels, k) })
		}
		slices.SortFunc(x.Kernels, func(a, b int) int {
			return cmp.Or(kernel.CompareVersions(r.Kernels[a].Key().Release, r.Kernels[b].Key().Release), a-b)
		})
	}
	return out
}

// lacks are the reasons for which the object fails on the kernels that count, and the release with which all came that it needs and
// that these kernels do not have, or perhaps not; that is never.first if the release of something is not known.
func (r *axis) lacks(row *ObjectRow, counts func(kernel int) bool) (out []Lack, all rule.Release) {
	on := make(map[Lack][]bool) // by kernel
	for _, d := range row.Decides {
		p := &r.Programs[d.Program]
		came := make([]rule.Release, len(r.Kernels)) // of the program's type, where a kernel lacks it
		for i := range p.Findings {
			if f := &p.Findings[i]; f.Code == rule.ProgTypeMissing {
				for _, k := range f.Kernels {
					came[k] = f.CameWith()
				}
			}
		}
		for i := range p.Findings {
			f := &p.Findings[i]
			if f.OfFile() || f.Status < rule.MayFail || row.excused != nil && row.excused(&f.Finding) {
				continue
			}
			l := Lack{Family: rule.FamilyOf(f.Code), Subject: f.Subject, Refused: !f.Absent(), Differs: differs(&f.Finding)}
			with := f.CameWith()
			if with != 0 {
				l.Came = with.String()
			}
			if f.Code == rule.RunningKernelNone { // it lacks its BTF, and not what needs it
				l.Subject = rule.OwnBTFFile
			}
			kernels := on[l]
			for _, k := range f.Kernels {
				if _, decides := slices.BinarySearch(d.Kernels, k); !decides || !counts(k) {
					continue
				}
				if came[k] != 0 && f.Code != rule.ProgTypeMissing && (with != 0 && with <= came[k] || ofProgType(&f.Finding)) {
					continue
				}
				if f.Status != rule.Fails {
					all = max(all, with)
					continue
				}
				if all = max(all, with); with == 0 {
					all = never.first
				}
				if kernels == nil {
					kernels = make([]bool, len(r.Kernels))
					on[l] = kernels
				}
				kernels[k] = true
			}
		}
	}
	for l, kernels := range on {
		for _, lacks := range kernels {
			if lacks {
				l.Kernels++
			}
		}
		if l.Came == "" && l.Family != rule.FamilyRunning { // which the configuration decides
			l.Seen = r.seen(row, kernels)
		}
		out = append(out, l)
	}
	sort.Slice(out, func(i, j int) bool { // no two have the same family, subject, release and Refused
		a, b := &out[i], &out[j]
		return cmp.Or(-cmp.Compare(a.Kernels, b.Kernels), -kernel.CompareVersions(a.Came, b.Came), cmp.Compare(a.Family, b.Family),
			cmp.Compare(a.Subject, b.Subject), b2i(a.Refused)-b2i(b.Refused), b2i(a.Differs)-b2i(b.Differs)) < 0
	})
	return out, all
}

// defects are the findings for which the object does not work that are about the object and not about kernels. One that refers to
// what other objects define is not linked yet, and cilium/ebpf may not read it.
func (r *axis) defects(row *ObjectRow) (out []rule.Finding) {
	known := make(map[rule.Finding]bool) // an object may have as many as limits.Findings
	for _, d := range row.Decides {
		for _, f := range r.Programs[d.Program].Findings {
			if f.Source, f.Guard = "", nil; f.Status >= rule.Unknown && f.OfFile() && !known[f.Finding] {
				known[f.Finding] = true
				out = append(out, f.Finding)
			}
		}
	}
	if slices.ContainsFunc(out, func(f rule.Finding) bool { return f.Code == rule.KsymUndeclared }) {
		out = slices.DeleteFunc(out, func(f rule.Finding) bool { return f.Code == rule.ObjectUnread })
	}
	slices.SortFunc(out, func(a, b rule.Finding) int { return cmp.Or(cmp.Compare(a.Code, b.Code), a.Compare(&b)) })
	return out
}

// seen returns the oldest release that is newer than every kernel that lacks something, "" if there is none.
func (r *axis) seen(row *ObjectRow, lacking []bool) string {
	last, oldest := rule.Release(0), rule.Release(0)
	for k, lacks := range lacking {
		if lacks {
			last = max(last, r.releases[k])
		}
	}
	for k := range r.Kernels {
		if v := r.releases[k]; v > last && row.Status[k].Judged() && (oldest == 0 || v < oldest) {
			oldest = v
		}
	}
	if last == 0 || oldest == 0 {
		return ""
	}
	return oldest.String()
}

// newestBefore returns the release of the newest kernel that the object is for and that is older than a release, 0 if there is none.
func (r *axis) newestBefore(row *ObjectRow, first rule.Release) (newest rule.Release) {
	for k := range r.Kernels {
		if v := r.releases[k]; v < first && row.Status[k].Judged() {
			newest = max(newest, v)
		}
	}
	return newest
}

// differs reports whether the kernel has what the finding is about, and not as the object declares it.
func differs(f *rule.Finding) bool {
	switch f.Code {
	case rule.KsymType, rule.KfuncPrototype, rule.KconfigType, relo.TypeMismatch:
		return true
	}
	return f.Code == relo.FieldMissing && f.Cause != ""
}

// ofProgType reports whether the finding follows from the lack of a type of programs: on what only such programs are attached to, and
// on BTF that the kernel has for them.
func ofProgType(f *rule.Finding) bool {
	if rule.FamilyOf(f.Code) == rule.FamilyRunning {
		return true
	}
	return rule.FamilyOf(f.Code) == rule.FamilyTarget && slices.ContainsFunc([]string{"function bpf_lsm_", "function bpf_iter_", "tracepoint ", "hook "},
		func(prefix string) bool { return strings.HasPrefix(f.Subject, prefix) })
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
