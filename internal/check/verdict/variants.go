// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/check/rule"
)

// variantsOf returns the groups of whole objects from which loaders take one, by a policy: for each, the alternatives as indices of
// the objects. An object is in one group at most; what comes first counts. Alternatives without objects are left out, and so are groups
// that have one alternative then.
func (p *Policy) variantsOf(objects []*rule.Object) (groups [][][]int) {
	taken := make(map[int]bool)
	for c := range p.of(oneOf) {
		var group [][]int
		for _, g := range c.alternatives {
			var list []int
			for i, o := range objects {
				if g.whole != nil && !taken[i] && g.about(o) {
					list, taken[i] = append(list, i), true
				}
			}
			if list != nil {
				group = append(group, list)
			}
		}
		if len(group) > 1 {
			groups = append(groups, group)
		}
	}
	return groups
}

// variants returns the row of a group: on each kernel the verdict on the alternative that works best there. The loader does not load
// alternatives that do not work where another is better, so their rows change.
func (r *Report) variants(group [][]int) (row ObjectRow) {
	row.Variants = group
	var names []string
	for _, a := range group {
		var parts []string
		for _, i := range a {
			o := &r.Objects[i]
			parts, row.Programs = append(parts, o.Object), append(row.Programs, o.Programs...)
		}
		names = append(names, strings.Join(parts, "+"))
	}
	row.Object = folded(names)
	verdicts := make([]kernelStatus, len(group))
	for k := range r.Kernels {
		for n, a := range group {
			verdicts[n] = r.together(a, k)
		}
		best, of := bestOf(verdicts)
		row.Status, row.Load = append(row.Status, of.status), append(row.Load, of.load)
		for n, a := range group {
			if n != best && verdicts[n].status > rule.Guarded {
				r.leaveOut(a, k)
			}
		}
	}
	for _, i := range slices.Concat(group...) {
		row.Decides = append(row.Decides, r.Objects[i].Decides...)
	}
	return row
}

// together returns the verdict on several objects that all have to work on a kernel.
func (r *Report) together(objects []int, kernel int) kernelStatus {
	w := kernelStatus{rule.Other, rule.Other}
	for _, i := range objects {
		o := &r.Objects[i]
		w = kernelStatus{both(w.status, o.Status[kernel]), both(w.load, o.Load[kernel])}
	}
	return w
}

// bestOf returns the index of the best verdict, and that verdict. If no alternative is loaded, the index is -1.
func bestOf(verdicts []kernelStatus) (best int, of kernelStatus) {
	best, of = -1, kernelStatus{rule.Other, rule.Other}
	for n, w := range verdicts {
		switch judged := w.status.Judged(); {
		case judged && (best < 0 || w.better(of)):
			best, of = n, w
		case !judged && best < 0:
			of = kernelStatus{min(of.status, w.status), min(of.load, w.load)}
		}
	}
	return best, of
}

// folded joins different names: what they share, with what differs in braces, as shells write it.
func folded(names []string) string {
	if strings.Contains(strings.Join(names, ""), "+") {
		return "{" + strings.Join(names, ",") + "}"
	}
	prefix, suffix := names[0], names[0]
	for _, n := range names[1:] {
		for !strings.HasPrefix(n, prefix) {
			prefix = prefix[:len(prefix)-1]
		}
		for !strings.HasSuffix(n, suffix) {
			suffix = suffix[1:]
		}
	}
	suffix = suffix[strings.IndexByte(suffix+".", '.'):]
	if !slices.Contains(names, prefix+suffix) { // cut between words, not within
		prefix = prefix[:strings.LastIndexAny(prefix, "_-./")+1]
	}
	var parts []string
	for _, n := range names {
		if len(n) < len(prefix)+len(suffix) {
			return "{" + strings.Join(names, ",") + "}"
		}
		parts = append(parts, n[len(prefix):len(n)-len(suffix)])
	}
	return prefix + "{" + strings.Join(parts, ",") + "}" + suffix
}

// leaveOut notes that objects are not loaded on a kernel.
func (r *Report) leaveOut(objects []int, kernel int) {
	for _, i := range objects {
		r.Objects[i].leaveOut(kernel)
	}
}

// leaveOut notes that the object is not loaded on a kernel.
func (row *ObjectRow) leaveOut(kernel int) {
	if !row.Status[kernel].Judged() {
		return
	}
	row.Status[kernel], row.Load[kernel] = rule.Unloaded, rule.Unloaded
	for _, l := range row.Loaders {
		l.Status[kernel], l.Load[kernel] = rule.Unloaded, rule.Unloaded
	}
	var left []Decider
	for _, d := range row.Decides {
		d.Kernels = slices.DeleteFunc(slices.Clone(d.Kernels), func(k int) bool { return k == kernel })
		if len(d.Kernels) > 0 {
			left = append(left, d)
		}
	}
	row.Decides = left
}

// leaveOutPrograms sets the verdicts on programs of an object to Unloaded on kernels on which the plan does not load them, and to
// Unknown on kernels on which it may not.
func (r *Report) leaveOutPrograms(row *ObjectRow, pl *plan) {
	for j, n := range row.Programs {
		p := &r.Programs[n]
		gone, unsure := make([]bool, len(r.Kernels)), []int(nil)
		any := false // whether gone has any kernel
		set := func(k int, s rule.Status) {
			if !any { // clone first: programs share slices
				p.Status, p.Load = slices.Clone(p.Status), slices.Clone(p.Load)
			}
			gone[k], any = true, true
			p.Status[k], p.Load[k] = s, s
		}
		for k := range r.Kernels {
			key := r.Kernels[k].Key()
			switch l := pl.loads(j, key); {
			case p.Status[k] == rule.Other:
			case row.Status[k] == rule.Unloaded || l == isNotLoaded:
				set(k, rule.Unloaded)
			case l == mayBeLoaded && (p.Status[k] > rule.Guarded || pl.loadsAny(len(row.Programs), key) == mayBeLoaded):
				set(k, rule.Unknown)
				unsure = append(unsure, k)
			}
		}
		if !any {
			continue
		}
		var left []KernelFinding
		for _, f := range p.Findings {
			f.Kernels = slices.DeleteFunc(slices.Clone(f.Kernels), func(k int) bool { return gone[k] })
			if len(f.Kernels) > 0 {
				left = append(left, f)
			}
		}
		if unsure != nil {
			undecided := rule.Finding{Status: rule.Unknown, Code: rule.AnalysisWhen, Subject: "kernel"}
			left = append(left, KernelFinding{undecided, unsure})
		}
		p.Findings = left
		SortFindings(p.Findings)
	}
}

// Whole returns the rows of what is judged as one, in order: executables with several objects, variants, and the other objects.
func (r *Report) Whole() (rows []*ObjectRow) {
	for _, u := range r.objectsOrVariants() {
		name := r.executableOf(u)
		x := slices.IndexFunc(r.Executables, func(o ObjectRow) bool { return o.Object == name })
		switch {
		case x < 0:
			rows = append(rows, u)
		case !slices.Contains(rows, &r.Executables[x]):
			rows = append(rows, &r.Executables[x])
		}
	}
	return rows
}

// objectsOrVariants returns the rows of variants, and of the objects that are none, in order.
func (r *Report) objectsOrVariants() (rows []*ObjectRow) {
	for i := range r.Objects {
		switch v := r.variantsWith(i); {
		case v < 0:
			rows = append(rows, &r.Objects[i])
		case !slices.Contains(rows, &r.Variants[v]):
			rows = append(rows, &r.Variants[v])
		}
	}
	return rows
}

// isVariant reports whether loaders choose between an object, by its index, and others.
func (r *Report) isVariant(object int) bool { return r.variantsWith(object) >= 0 }

// variantsWith returns the index of the variants that an object is one of, or -1.
func (r *Report) variantsWith(object int) int {
	return slices.IndexFunc(r.Variants, func(v ObjectRow) bool {
		return slices.ContainsFunc(v.Variants, func(a []int) bool { return slices.Contains(a, object) })
	})
}

// Gap is kernels on which nothing is loaded, or none of some variants.
type Gap struct {
	Row     *ObjectRow // row of the variants; nil if nothing at all is loaded
	Kernels []int      // ascending
}

// Gaps returns the gaps among the kernels that sel chooses. Kernels of machines that no object is for count only if there are no others.
func (r *Report) Gaps(sel func(kernel int) bool) (gaps []Gap) {
	var all, others []int
	loads := false // something is loaded on some kernel
	for k := range r.Kernels {
		if !sel(k) {
			continue
		}
		status := rule.Other
		for i := range r.Objects {
			status = both(status, r.Objects[i].Status[k])
		}
		switch status {
		case rule.Unloaded:
			all = append(all, k)
		case rule.Other:
			others = append(others, k)
		default:
			loads = true
		}
	}
	if !loads && len(all) == 0 {
		all = others
	}
	if len(all) > 0 {
		gaps = append(gaps, Gap{nil, all})
	}
	for i := range r.Variants {
		v := &r.Variants[i]
		var kernels []int
		for k, s := range v.Status {
			if sel(k) && s == rule.Unloaded && !slices.Contains(all, k) {
				kernels = append(kernels, k)
			}
		}
		if len(kernels) > 0 {
			gaps = append(gaps, Gap{v, kernels})
		}
	}
	return gaps
}
