// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"cmp"
	"maps"
	"slices"

	"github.com/btfgen/btfgen/internal/check/rule"
)

// Cause is a finding with all the programs that it is about and all the kernels where it counts. Its Source, Guard and Loader are not set.
type Cause struct {
	rule.Finding
	Sources  []string `json:"sources,omitempty"` // file:line, sorted
	Programs []int    `json:"programs"`          // indices, ascending
	Kernels  []int    `json:"kernels"`           // indices, ascending
}

// Causes returns what costs kernels, most first, from status least on.
func (r *Report) Causes(least rule.Status) []Cause {
	return r.causes(func(s rule.Status) bool { return s >= least })
}

// Warnings returns the findings on programs that load, but read something else than on other kernels. Their status is OK.
func (r *Report) Warnings() []Cause {
	return r.causes(func(s rule.Status) bool { return s == rule.OK })
}

func (r *Report) causes(of func(rule.Status) bool) []Cause {
	var out []Cause
	var on [][]bool // of out, by kernel
	at := make(map[rule.Finding]int)
	for pi := range r.Programs {
		for _, f := range r.Programs[pi].Findings {
			if !of(f.Status) || f.Status == rule.Other {
				continue
			}
			k := f.Finding
			k.Source, k.Guard, k.Loader = "", nil, ""
			i, ok := at[k]
			if !ok {
				i = len(out)
				at[k] = i
				out, on = append(out, Cause{Finding: k}), append(on, make([]bool, len(r.Kernels)))
			}
			c := &out[i]
			if n := len(c.Programs); n == 0 || c.Programs[n-1] != pi {
				c.Programs = append(c.Programs, pi)
			}
			if f.Source != "" {
				c.Sources = append(c.Sources, f.Source)
			}
			for _, k := range f.Kernels {
				on[i][k] = true
			}
		}
	}
	for i := range out {
		for k, counts := range on[i] {
			if counts {
				out[i].Kernels = append(out[i].Kernels, k)
			}
		}
		slices.Sort(out[i].Sources)
		out[i].Sources = slices.Compact(out[i].Sources)
	}
	slices.SortStableFunc(out, func(a, b Cause) int {
		if c := cmp.Or(-cmp.Compare(len(a.Kernels), len(b.Kernels)), -cmp.Compare(a.Status, b.Status), -cmp.Compare(len(a.Programs), len(b.Programs))); c != 0 {
			return c
		}
		return a.Compare(&b.Finding)
	})
	return out
}

// Deciding returns those of Causes for which whole objects do not work: a program that
// its object can do without has none.
func (r *Report) Deciding(least rule.Status) []Cause {
	only := Report{Kernels: r.Kernels, Programs: make([]ProgramRow, len(r.Programs))}
	for i := range r.Objects {
		for _, d := range r.Objects[i].Decides {
			p := r.Programs[d.Program]
			var l []KernelFinding
			for _, f := range p.Findings {
				spared := func(k int) bool {
					_, decides := slices.BinarySearch(d.Kernels, k)
					return !decides
				}
				if slices.ContainsFunc(f.Kernels, spared) {
					f.Kernels = slices.DeleteFunc(slices.Clone(f.Kernels), spared)
				}
				if len(f.Kernels) > 0 {
					l = append(l, f)
				}
			}
			p.Findings = l
			only.Programs[d.Program] = p
		}
	}
	return only.Causes(least)
}

// Worst is the worst verdict on any object on the kernels that sel chooses.
func (r *Report) Worst(sel func(kernel int) bool) rule.Status {
	w := rule.OK
	for i := range r.Objects {
		for k, s := range r.Objects[i].Status {
			if sel(k) {
				w = max(w, s)
			}
		}
	}
	return w
}

// Counts returns how many programs have each verdict at worst, on kernels that sel chooses and on which they are loaded. Those that are
// loaded on none count as Unloaded, or as Other if that is for their machines alone.
func (r *Report) Counts(sel func(kernel int) bool) map[rule.Status]int {
	n := make(map[rule.Status]int)
	for i := range r.Programs {
		w := rule.Other
		for k, s := range r.Programs[i].Status {
			if sel(k) {
				w = both(w, s)
			}
		}
		n[w]++
	}
	return n
}

// Modules returns the sorted names of the modules that programs need. If one of several modules is enough, it is the first.
func (r *Report) Modules() []string {
	names := make(map[string]bool)
	for i := range r.Programs {
		for _, f := range r.Programs[i].Findings {
			if f.Code == rule.ModuleNeeded {
				names[f.Names.List()[0]] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}
