// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
)

// JSON writes a line for each difference and disagreement.
func (rep *Report) JSON(w io.Writer) error {
	enc := escape.JSON(w)
	type finding struct {
		Class   string `json:"class"`
		Message string `json:"message"`
	}
	for i := range rep.Kernels {
		k := &rep.Kernels[i]
		for _, d := range k.Differences {
			line := struct {
				finding
				Difference
			}{finding{"different", fmt.Sprintf("%s: %s of %s", d.Loader, d.What, d.Relocation)}, d}
			if err := enc.Encode(line); err != nil {
				return err
			}
		}
		for _, d := range k.Disagreements {
			line := struct {
				finding
				Disagreement
			}{finding{"disagreeing", d.Relocation}, d}
			if err := enc.Encode(line); err != nil {
				return err
			}
		}
	}
	return nil
}

// shown is how many differences of a kernel are listed where nobody asked for
// all: the BTF of a wrong kernel has thousands.
const shown = 10

// Text writes the findings and disagreements for people. verbose lists every
// one, and every kernel.
func (rep *Report) Text(w io.Writer, verbose bool) {
	for i := range rep.Kernels {
		k := &rep.Kernels[i]
		if len(k.Differences) == 0 {
			continue
		}
		escape.Fprintf(w, "%s: %s\n", k.Name, words.Plural(len(k.Differences), "difference"))
		for j, d := range k.Differences {
			if j == shown && !verbose {
				escape.Fprintf(w, "  and %d more (--verbose lists them)\n", len(k.Differences)-shown)
				break
			}
			place := ""
			if d.Object != "" {
				place = fmt.Sprintf(" in %s %s (%s #%d)", d.Object, d.Program, d.Section, d.Index)
			}
			escape.Fprintf(w, "  %s: %s of %s%s\n    full       %s\n    minimized  %s\n", d.Loader, d.What, d.Relocation, place, d.Full, d.Minimized)
		}
	}
	for _, n := range rep.NotMinimized {
		escape.Fprintf(w, "%s: no minimized BTF\n", n)
	}
	for _, n := range rep.NoKernel {
		escape.Fprintf(w, "%s: minimized, but not among the kernels\n", n)
	}
	rep.disagreements(w, verbose)
}

// disagreements lists relocations that the loaders decide differently, each
// with the kernels where they do.
func (rep *Report) disagreements(w io.Writer, verbose bool) {
	type group struct {
		first   Disagreement
		kernels []string
	}
	var all []*group
	at := make(map[string]*group)
	for i := range rep.Kernels {
		for _, d := range rep.Kernels[i].Disagreements {
			key := strings.Join([]string{d.Object, d.Program, d.Relocation, verdict(d.Libbpf), verdict(d.Cilium)}, "\x00")
			g := at[key]
			if g == nil {
				g = &group{first: d}
				at[key] = g
				all = append(all, g)
			}
			if !slices.Contains(g.kernels, d.Kernel) {
				g.kernels = append(g.kernels, d.Kernel)
			}
		}
	}
	if len(all) == 0 {
		return
	}
	escape.Fprintf(w, "libbpf and cilium/ebpf disagree on the full BTF:\n")
	for _, g := range all {
		escape.Fprintf(w, "  %s in %s %s\n    libbpf       %s\n    cilium/ebpf  %s\n    %s\n",
			g.first.Relocation, g.first.Object, g.first.Program, g.first.Libbpf, g.first.Cilium,
			words.Kernels(g.kernels, len(rep.Kernels), verbose))
	}
}

// verdict is the part of a decision that is the same on most kernels.
func verdict(s string) string {
	switch {
	case strings.HasSuffix(s, "=poison"), strings.HasPrefix(s, "error: "):
		return s
	case strings.Contains(s, "->"):
		return "value"
	}
	word, _, _ := strings.Cut(s, " ")
	return word
}

// Summary is how much was compared, and what could not be.
type Summary struct {
	Kernels     int    `json:"kernels"`
	Records     int    `json:"libbpf_decisions"` // compared
	Fixups      int    `json:"cilium_decisions"`
	Aya         int    `json:"aya_decisions"`
	Differences int    `json:"differences"`
	Notes       []Note `json:"notes"`
}

// Summary sums the report up.
func (rep *Report) Summary() *Summary {
	s := &Summary{Kernels: len(rep.Kernels), Notes: append([]Note{}, rep.Notes...)}
	for _, k := range rep.Kernels {
		s.Records, s.Fixups, s.Aya = s.Records+k.Records, s.Fixups+k.Fixups, s.Aya+k.Aya
		s.Differences += len(k.Differences)
	}
	return s
}

// Text returns the note in words.
func (n *Note) Text() string {
	switch {
	case n.Reason != "" && n.Records > 0:
		return fmt.Sprintf("cilium/ebpf cannot load %s, %s not checked by its rules: %s", n.Object, words.Plural(n.Records, "record"), n.Reason)
	case n.Reason != "":
		return fmt.Sprintf("cilium/ebpf cannot load %s, its functions were checked one by one: %s", n.Object, n.Reason)
	}
	return fmt.Sprintf("%s: %s in no program that cilium/ebpf would load", n.Object, words.Plural(n.Records, "record"))
}

// String tells in one line how much was compared.
func (s *Summary) String() string {
	return fmt.Sprintf("%s: %d decisions of libbpf, %d of cilium/ebpf and %d of aya compared, %s",
		words.Plural(s.Kernels, "kernel"), s.Records, s.Fixups, s.Aya, words.Plural(s.Differences, "difference"))
}
