// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/job/generate"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
)

// diffSummary returns the counts in one line.
func diffSummary(d *generate.Diff) string {
	s := fmt.Sprintf("%d gained, %d lost, %d changed, %d the same", len(d.Gained), len(d.Lost), len(d.Changed), d.Same)
	if d.Old.Size > 0 && d.New.Size > 0 {
		s += fmt.Sprintf("; %s before, %s now", words.Bytes(d.Old.Size), words.Bytes(d.New.Size))
	}
	return words.Plural(d.New.Kernels, "kernel") + ": " + s
}

// changes are the texts of DiffObject.Change.
var changes = map[string]string{
	generate.ObjectGained: "new", generate.ObjectLost: "removed", generate.ObjectRelocations: "other relocations", generate.ObjectCode: "the same relocations, other code",
	generate.ObjectFile: "another file",
}

// ArchiveDiff writes the differences between two archives for people.
func ArchiveDiff(w io.Writer, d *generate.Diff) {
	for _, o := range d.Objects {
		escape.Fprintf(w, "object %s: %s\n", o.Name, changes[o.Change])
	}
	for _, k := range d.Gained {
		escape.Fprintf(w, "+ %s  %s\n", k.Kernel, words.Bytes(int64(k.NewSize)))
	}
	for _, k := range d.Lost {
		escape.Fprintf(w, "- %s  %s\n", k.Kernel, words.Bytes(int64(k.OldSize)))
	}
	for _, k := range d.Changed {
		escape.Fprintf(w, "~ %s  %s → %s\n", k.Kernel, words.Bytes(int64(k.OldSize)), words.Bytes(int64(k.NewSize)))
	}
	escape.Fprintf(w, "%s\n", diffSummary(d))
}

// ArchiveDiffMarkdown writes the differences for release notes: a table by distribution, and the kernels that are new or gone.
func ArchiveDiffMarkdown(w io.Writer, d *generate.Diff) {
	escape.Fprintf(w, "%s.\n", diffSummary(d))
	if len(d.Objects) > 0 {
		escape.Fprintf(w, "\n")
	}
	for _, o := range d.Objects {
		escape.Fprintf(w, "- object %s: %s\n", escape.Code(o.Name), changes[o.Change])
	}
	type row struct{ gained, lost, changed int }
	rows := make(map[string]*row)
	var order []string
	count := func(kernels []generate.DiffKernel, n func(*row) *int) {
		for _, k := range kernels {
			series := k.Kernel[:max(0, strings.LastIndexByte(k.Kernel, '/'))]
			if rows[series] == nil {
				rows[series] = new(row)
				order = append(order, series)
			}
			*n(rows[series])++
		}
	}
	count(d.Gained, func(r *row) *int { return &r.gained })
	count(d.Lost, func(r *row) *int { return &r.lost })
	count(d.Changed, func(r *row) *int { return &r.changed })
	slices.Sort(order)
	if len(order) > 0 {
		escape.Fprintf(w, "\n| distribution | gained | lost | changed |\n|---|--:|--:|--:|\n")
	}
	for _, s := range order {
		r := rows[s]
		escape.Fprintf(w, "| %s | %d | %d | %d |\n", escape.Code(s), r.gained, r.lost, r.changed)
	}
	for _, part := range []struct {
		title   string
		kernels []generate.DiffKernel
	}{{"Gained", d.Gained}, {"Lost", d.Lost}, {"Changed", d.Changed}} {
		if len(part.kernels) == 0 {
			continue
		}
		escape.Fprintf(w, "\n<details><summary>%s: %s</summary>\n\n", part.title, words.Plural(len(part.kernels), "kernel"))
		for _, k := range part.kernels {
			escape.Fprintf(w, "- %s\n", escape.Code(k.Kernel))
		}
		escape.Fprintf(w, "\n</details>\n")
	}
}
