// SPDX-License-Identifier: Apache-2.0

// Package report writes what package check found: for the terminal, as
// Markdown, JSON, JUnit XML, SARIF and HTML.
package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/check"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// order sorts kernels by distribution, machine and release, whatever release
// of the distribution they are from, so that neighbours are similar. The
// result holds indices of r.Kernels.
func order(r *check.Report) []int {
	keys := make([]kernel.Key, len(r.Kernels))
	out := make([]int, len(r.Kernels))
	for i := range r.Kernels {
		keys[i], out[i] = r.Kernels[i].Key().Canonical(), i
	}
	slices.SortStableFunc(out, func(x, y int) int {
		a, b := keys[x], keys[y]
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Arch, b.Arch),
			kernel.CompareVersions(a.Release, b.Release), kernel.CompareVersions(a.VersionID, b.VersionID))
	})
	return out
}

// span is a run of kernels in order.
type span struct{ kernels []int }

// spans cuts the kernels in order wherever same says that neighbours differ.
func spans(r *check.Report, ordered []int, same func(a, b int) bool) (out []span) {
	for i, k := range ordered {
		if i > 0 {
			prev := ordered[i-1]
			if f := r.Kernels[k].Family(); f != "" && f == r.Kernels[prev].Family() && same(prev, k) {
				out[len(out)-1].kernels = append(out[len(out)-1].kernels, k)
				continue
			}
		}
		out = append(out, span{[]int{k}})
	}
	return out
}

// where folds a set of kernels into ranges, few if they are many.
func where(r *check.Report, ordered, set []int, most int) string {
	if len(set) == len(ordered) {
		if len(set) == 1 {
			return r.Kernels[set[0]].Name
		}
		return fmt.Sprintf("all %d kernels", len(set))
	}
	in := make([]bool, len(r.Kernels))
	for _, k := range set {
		in[k] = true
	}
	var labels []string
	for _, s := range spans(r, ordered, func(a, b int) bool { return in[a] == in[b] }) {
		if in[s.kernels[0]] {
			labels = append(labels, label(r, s.kernels))
		}
	}
	if len(labels) > most {
		labels = append(labels[:most-1], fmt.Sprintf("%d more ranges", len(labels)-most+1))
	}
	return fmt.Sprintf("%s: %s", words.Plural(len(set), "kernel"), strings.Join(labels, "; "))
}

// programs names some programs, by object: "a.o: p, q; b.o: r".
func programs(r *check.Report, list []int, most int) string {
	var b strings.Builder
	last := ""
	for i, p := range list {
		if i == most && len(list) > most+1 {
			escape.Fprintf(&b, " and %d more", len(list)-most)
			break
		}
		name, object := r.Programs[p].Name, r.Programs[p].Object
		switch {
		case i == 0:
			name = object + ": " + name
		case object != last:
			name = "; " + object + ": " + name
		default:
			name = ", " + name
		}
		last = object
		b.WriteString(name)
	}
	return b.String()
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
