// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/check"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// view is a report for people: its kernels are in an order in which neighbours are similar.
type view struct {
	*check.Report
	ordered []int // indices of Kernels, by distribution, machine and release, whatever release of the distribution they are from
}

func newView(r *check.Report) *view {
	v := &view{r, make([]int, len(r.Kernels))}
	keys := make([]kernel.Key, len(r.Kernels))
	for i := range r.Kernels {
		keys[i], v.ordered[i] = r.Kernels[i].Key().Canonical(), i
	}
	slices.SortStableFunc(v.ordered, func(x, y int) int {
		a, b := keys[x], keys[y]
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Arch, b.Arch),
			kernel.CompareVersions(a.Release, b.Release), kernel.CompareVersions(a.VersionID, b.VersionID))
	})
	return v
}

// spans cuts ordered kernels into runs, wherever same says that neighbours differ or their families do.
func (v *view) spans(ordered []int, same func(a, b int) bool) (out [][]int) {
	for i, k := range ordered {
		if i > 0 {
			prev := ordered[i-1]
			if f := v.Kernels[k].Family(); f != "" && f == v.Kernels[prev].Family() && same(prev, k) {
				out[len(out)-1] = append(out[len(out)-1], k)
				continue
			}
		}
		out = append(out, []int{k})
	}
	return out
}

// where folds a set of kernels into ranges, few if they are many.
func (v *view) where(set []int, most int) string {
	if len(set) == len(v.ordered) {
		if len(set) == 1 {
			return v.Kernels[set[0]].Name
		}
		return fmt.Sprintf("all %d kernels", len(set))
	}
	in := make([]bool, len(v.Kernels))
	for _, k := range set {
		in[k] = true
	}
	var labels []string
	for _, s := range v.spans(v.ordered, func(a, b int) bool { return in[a] == in[b] }) {
		if in[s[0]] {
			labels = append(labels, label(v.Report, s))
		}
	}
	if len(labels) > most {
		labels = append(labels[:most-1], fmt.Sprintf("%d more ranges", len(labels)-most+1))
	}
	return fmt.Sprintf("%s: %s", words.Plural(len(set), "kernel"), strings.Join(labels, "; "))
}

// programs names some programs, by object: "a.o: p, q; b.o: r".
func (v *view) programs(list []int, most int) string {
	parts := make([][2]string, len(list))
	for i, p := range list {
		parts[i] = [2]string{v.Programs[p].Object, v.Programs[p].Name}
	}
	return grouped(parts, ": ", most)
}

// line is a finding in a line: verdict, subject, what is wrong, place and code.
func line(f *check.Finding) string {
	g := groupOf(f)
	s := g.text(1)
	if f.Source != "" {
		s += " (" + f.Source + ")"
	}
	return s + " [" + string(f.Code) + "]"
}
