package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/btfgen/btfgen/internal/generate"
	"github.com/btfgen/btfgen/pkg/relolog"
)

// summary tells what a run came to: what was left out, what is unresolved and
// where, and how much was written.
func summary(w io.Writer, out string, rep *generate.Report, verbose bool) {
	reportSkipped(w, rep.Skipped)
	if len(rep.Unresolved) > 0 {
		fmt.Fprintf(w, "unresolved:\n")
		tw := tabwriter.NewWriter(w, 2, 8, 2, ' ', 0)
		list := fold(rep.Unresolved)
		for i, u := range list {
			if i == maxRows && !verbose {
				fmt.Fprintf(tw, "  … and %d more (-v lists all)\n", len(list)-i)
				break
			}
			fmt.Fprintf(tw, "  %s\t%s\t%s\t%s\t%s\n", u.result, u.what, strings.Join(u.kinds, ","), some(u.objects, verbose), kernels(u.kernels, len(rep.Kernels), verbose))
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

// folded is a field, type or enumerator that fails on the same kernels,
// whoever asks for it and whatever for.
type folded struct {
	result                  relolog.Result
	what                    string
	kinds, objects, kernels []string
}

func fold(all []generate.Unresolved) []*folded {
	var out []*folded
	at := make(map[string]*folded)
	for _, u := range all {
		kind, what, _ := strings.Cut(u.Relo, " ")
		key := strings.Join(append([]string{string(u.Result), what}, u.Kernels...), "\x00")
		f := at[key]
		if f == nil {
			f = &folded{result: u.Result, what: what, kernels: u.Kernels}
			at[key] = f
			out = append(out, f)
		}
		if !slices.Contains(f.kinds, kind) {
			f.kinds = append(f.kinds, kind)
		}
		if !slices.Contains(f.objects, u.Object) {
			f.objects = append(f.objects, u.Object)
		}
	}
	return out
}

// maxRows is how many unresolved relocations are listed where nobody asked for
// all.
const maxRows = 20

// few is how many names are listed where nobody asked for all.
const few = 2

// some lists names, or the first of them and how many more there are.
func some(names []string, verbose bool) string {
	if verbose || len(names) <= few {
		return strings.Join(names, " ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], " "), len(names)-few)
}

// kernels says where something happens.
func kernels(names []string, all int, verbose bool) string {
	if len(names) == all && all > few && !verbose {
		return "all kernels"
	}
	return fmt.Sprintf("%d of %d kernels: %s", len(names), all, some(names, verbose))
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
	case n < 1_000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}
