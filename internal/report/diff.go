// SPDX-License-Identifier: Apache-2.0

package report

import (
	"io"

	"github.com/btfgen/btfgen/internal/check"
	"github.com/btfgen/btfgen/internal/text/escape"
)

// Diff writes what the programs use that kernels a and b disagree on, and
// returns how many differences there are. Without any it says so.
func Diff(w io.Writer, r *check.Report, a, b int) int {
	l := r.Diff(a, b)
	if len(l) == 0 {
		escape.Fprintf(w, "nothing differs between %s and %s\n", r.Kernels[a].Name, r.Kernels[b].Name)
		return 0
	}
	escape.Fprintf(w, "--- %s\n+++ %s\n", r.Kernels[a].Name, r.Kernels[b].Name)
	program, last := -1, ""
	for _, d := range l {
		if d.Program != program {
			program, last = d.Program, ""
			p := &r.Programs[program]
			escape.Fprintf(w, "%s: %s (%s): %s → %s\n", p.Object, p.Name, p.Section,
				cellTexts[cellOf(p.Status, p.Load, a)].name, cellTexts[cellOf(p.Status, p.Load, b)].name)
		}
		sign := "-"
		if d.Only == b {
			sign = "+"
		}
		if s := sign + " " + line(&d.Finding); s != last {
			last = s
			escape.Fprintf(w, "  %s\n", last)
		}
	}
	return len(l)
}
