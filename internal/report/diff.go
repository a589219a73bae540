package report

import (
	"fmt"
	"io"

	"github.com/btfgen/btfgen/internal/check"
)

// Diff writes what the programs use that kernels a and b disagree on, and
// returns how many differences there are.
func Diff(w io.Writer, r *check.Report, a, b int) int {
	l := r.Diff(a, b)
	fmt.Fprintf(w, "--- %s\n+++ %s\n", r.Kernels[a].Name, r.Kernels[b].Name)
	last := -1
	for _, d := range l {
		if d.Program != last {
			last = d.Program
			p := &r.Programs[d.Program]
			fmt.Fprintf(w, "%s: %s (%s): %s, %s\n", p.Object, p.Name, p.Section, p.Status[a], p.Status[b])
		}
		sign := "-"
		if d.Only == b {
			sign = "+"
		}
		fmt.Fprintf(w, "  %s %s\n", sign, sentence(&d.Finding))
	}
	return len(l)
}
