package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/btfgen/btfgen/internal/generate"
)

// summary tells what a run came to: what was left out, what is unresolved and
// where, and how much was written.
func summary(w io.Writer, out string, rep *generate.Report, verbose bool) {
	reportSkipped(w, rep.Skipped)
	if len(rep.Unresolved) > 0 {
		fmt.Fprintf(w, "unresolved:\n")
		tw := tabwriter.NewWriter(w, 2, 8, 2, ' ', 0)
		for _, u := range rep.Unresolved {
			fmt.Fprintf(tw, "  %s\t%s\t%s\t%s\n", u.Result, u.Relo, u.Object, kernels(u.Kernels, len(rep.Kernels), verbose))
		}
		tw.Flush()
	}
	var raw, disk int64
	for _, k := range rep.Kernels {
		raw += k.RawSize
		disk += k.SourceSize
	}
	distinct, small := rep.Distinct()
	fmt.Fprintf(w, "%s: %s, %s of BTF (%s on disk) to %s in %s\n",
		out, plural(len(rep.Kernels), "kernel"), size(raw), size(disk), size(small), plural(distinct, "distinct file"))
}

// kernels says where something happens, by name if that is short.
func kernels(names []string, all int, verbose bool) string {
	const few = 2
	switch {
	case verbose || len(names) <= few:
		return strings.Join(names, " ")
	case len(names) == all:
		return "all kernels"
	default:
		return fmt.Sprintf("%d of %d kernels: %s …", len(names), all, strings.Join(names[:few], " "))
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// size returns a number of bytes with a decimal unit.
func size(n int64) string {
	switch {
	case n < 10_000:
		return fmt.Sprintf("%d B", n)
	case n < 10_000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}
