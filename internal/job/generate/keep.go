// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"cmp"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
)

// Unmatched is a pattern of types to keep that names nothing in some kernels.
type Unmatched struct {
	Pattern string   `json:"pattern"`
	Kernels []string `json:"kernels"`
}

// unmatchedOf collects what names nothing, that of most kernels first.
func unmatchedOf(kernels []Kernel) (l []Unmatched) {
	at := make(map[string]int)
	for i := range kernels {
		for _, p := range kernels[i].unmatched {
			n, ok := at[p]
			if !ok {
				n = len(l)
				at[p] = n
				l = append(l, Unmatched{Pattern: p})
			}
			l[n].Kernels = append(l[n].Kernels, kernels[i].Name)
		}
	}
	slices.SortFunc(l, func(a, b Unmatched) int {
		return cmp.Or(-cmp.Compare(len(a.Kernels), len(b.Kernels)), cmp.Compare(a.Pattern, b.Pattern))
	})
	return l
}

// Nowhere returns the patterns that name nothing in any kernel. Of a part of a corpus
// nobody knows.
func (r *Report) Nowhere() (l []string) {
	for _, u := range r.Unmatched {
		if len(u.Kernels) == len(r.Kernels) && !r.part {
			l = append(l, u.Pattern)
		}
	}
	return l
}

// Unkept tells which patterns name nothing on some kernels, and with verbose on which.
func (r *Report) Unkept(w io.Writer, verbose bool) {
	some := r.Unmatched[len(r.Nowhere()):]
	if len(some) == 0 {
		return
	}
	if !verbose {
		escape.Fprintf(w, "--keep: %s without a type on some kernels (-v lists them)\n", words.Plural(len(some), "pattern"))
		return
	}
	escape.Fprintf(w, "--keep, without a type:\n")
	tw := tabwriter.NewWriter(w, 2, 8, 2, ' ', 0)
	for _, u := range some {
		escape.Fprintf(tw, "  %s\t%s\n", u.Pattern, words.Kernels(u.Kernels, len(r.Kernels), true))
	}
	tw.Flush()
}
