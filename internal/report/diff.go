// SPDX-License-Identifier: Apache-2.0

package report

import (
	"io"

	"github.com/btfgen/btfgen/internal/check"
	"github.com/btfgen/btfgen/internal/foreign"
)

// Diff writes what the programs use that kernels a and b disagree on, and
// returns how many differences there are.
func Diff(w io.Writer, r *check.Report, a, b int) int {
	l := r.Diff(a, b)
	foreign.Fprintf(w, "--- %s\n+++ %s\n", r.Kernels[a].Name, r.Kernels[b].Name)
	last := -1
	for _, d := range l {
		if d.Program != last {
			last = d.Program
			p := &r.Programs[d.Program]
			foreign.Fprintf(w, "%s: %s (%s): %s, %s\n", p.Object, p.Name, p.Section, p.Status[a], p.Status[b])
		}
		sign := "-"
		if d.Only == b {
			sign = "+"
		}
		foreign.Fprintf(w, "  %s %s\n", sign, sentence(&d.Finding))
	}
	return len(l)
}
