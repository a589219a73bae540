// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// manyObjects is the number of objects above which they are the rows of a table.
const manyObjects = 12

// Table writes Markdown for a README: distributions, and which object or executable works there. Many objects are rows, few are columns.
func Table(w io.Writer, r *verdict.Report, _ Options) error {
	all, objects := distributions(r), r.Whole()
	rows := [][]string{{"distribution", "Linux"}} // the first is the head
	for _, o := range objects {
		rows[0] = append(rows[0], escape.Markdown(o.Object))
	}
	for _, d := range all {
		row := []string{escape.Markdown(d.name), escape.Markdown(d.releases(r))}
		for _, o := range objects {
			row = append(row, d.cell(o))
		}
		rows = append(rows, row)
	}
	marks, named := len(objects), 2 // columns of results, and before these
	if len(objects) > max(manyObjects, len(all)) {
		turned := make([][]string, len(objects)+1)
		for i, row := range rows {
			head := row[0]
			switch {
			case i == 0:
				head = "object"
			case row[1] != "":
				head += ", Linux " + row[1]
			}
			turned[0] = append(turned[0], head)
			for j, cell := range row[2:] {
				turned[j+1] = append(turned[j+1], cell)
			}
		}
		rows, marks, named = turned, len(all), 1
	}
	b := bufio.NewWriter(w)
	for i, row := range rows {
		escape.Fprintf(b, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			escape.Fprintf(b, "|%s%s\n", strings.Repeat("---|", named), strings.Repeat(":-:|", marks))
		}
	}
	return b.Flush()
}

// distribution is the kernels of one version of a distribution.
type distribution struct {
	name    string
	kernels []int // indices
}

func distributions(r *verdict.Report) (out []distribution) {
	keys, all := make([]kernel.Key, len(r.Kernels)), make([]int, len(r.Kernels))
	for k := range all {
		keys[k], all[k] = r.Kernels[k].Key().Canonical(), k
	}
	name := func(k int) string {
		if keys[k].Known() {
			return strings.TrimSpace(keys[k].ID + " " + keys[k].VersionID)
		}
		return r.Kernels[k].Name
	}
	for _, kernels := range words.Group(all, func(k *int) any { return name(*k) }) {
		out = append(out, distribution{name(kernels[0]), kernels})
	}
	slices.SortStableFunc(out, func(a, b distribution) int {
		x, y := keys[a.kernels[0]], keys[b.kernels[0]]
		return cmp.Or(cmp.Compare(x.ID, y.ID), kernel.CompareVersions(x.Release, y.Release)) // versions may be words, as sid is
	})
	return out
}

// releases are the releases of Linux in a distribution, without patch levels.
func (d distribution) releases(r *verdict.Report) string {
	var all []string
	for _, k := range d.kernels {
		if v := r.Kernels[k].Release(); v != "" {
			all = append(all, v)
		}
	}
	if len(all) == 0 {
		return ""
	}
	first, last := slices.MinFunc(all, kernel.CompareVersions), slices.MaxFunc(all, kernel.CompareVersions)
	if first != last {
		return first + " to " + last
	}
	return first
}

// cell says on which of the kernels an object works.
func (d distribution) cell(o *verdict.ObjectRow) string {
	works, fails, unloaded, total := 0, 0, 0, 0
	for _, k := range d.kernels {
		switch s := o.Status[k]; {
		case s == rule.Unloaded:
			unloaded++
			continue
		case s == rule.Other:
			continue
		case s <= rule.Guarded:
			works++
		case s == rule.Fails:
			fails++
		}
		total++
	}
	switch {
	case total == 0 && unloaded > 0:
		return cellTexts[cellUnloaded].icon
	case total == 0:
		return ""
	case works == total:
		return cellTexts[cellFor(rule.OK)].icon
	case fails == total:
		return cellTexts[cellFor(rule.Fails)].icon
	case works == 0 && fails == 0:
		return cellTexts[cellFor(rule.MayFail)].icon
	}
	return fmt.Sprintf("%d of %d", works, total)
}
