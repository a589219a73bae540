// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/pkg/relo"
)

// Summary is what a run came to. Its JSON form is stable; fields are only ever
// added.
type Summary struct {
	Output   string           `json:"output"`
	Kernels  int              `json:"kernels"`
	Reused   int              `json:"reused"`   // taken over from an earlier run
	Distinct int              `json:"distinct"` // minimized BTFs
	Disk     int64            `json:"bytes_on_disk"`
	In       int64            `json:"bytes_in"`  // BTF of the kernels
	Out      int64            `json:"bytes_out"` // minimized BTF
	Seconds  float64          `json:"seconds"`
	Stages   map[string]int64 `json:"stage_ns"` // of all workers together

	Unresolved []Unresolved `json:"unresolved"`
	Unmatched  []Unmatched  `json:"keep_unmatched"` // patterns of --keep
}

// Summarize sums up a run that wrote to out and took some time.
func Summarize(out string, rep *Report, took time.Duration) *Summary {
	s := &Summary{
		Output: out, Kernels: len(rep.Kernels), Seconds: took.Seconds(),
		Unresolved: append([]Unresolved{}, rep.Unresolved...), Unmatched: append([]Unmatched{}, rep.Unmatched...), Stages: make(map[string]int64),
	}
	for _, st := range rep.Stages.All() {
		s.Stages[st.Name] = st.Time.Nanoseconds()
	}
	for _, k := range rep.Kernels {
		s.In += k.RawSize
		s.Disk += k.SourceSize
		if k.Reused {
			s.Reused++
		}
	}
	s.Distinct, s.Out = rep.Distinct()
	return s
}

// Poisoned tells which relocations are poisoned and where. verbose lists all of them, with all kernels and objects.
func (s *Summary) Poisoned(w io.Writer, verbose bool) {
	list := fold(s.Unresolved)
	if len(list) == 0 {
		return
	}
	if list[0].reach == unjudged {
		escape.Fprintf(w, "poisoned ('btfgen check' tells whether a program reaches them):\n")
	} else {
		escape.Fprintf(w, "poisoned, and whether the verifier reaches them:\n")
	}
	tw := tabwriter.NewWriter(w, 2, 8, 2, ' ', 0)
	for i, u := range list {
		if i == maxRows && !verbose {
			escape.Fprintf(tw, "  … and %d more (-v lists all)\n", len(list)-i)
			break
		}
		escape.Fprintf(tw, "  %s%s\t%s\t%s\t%s\n", u.reach, u.what, strings.Join(u.kinds, ","), words.Names(u.objects, verbose), words.Kernels(u.kernels, s.Kernels, verbose))
	}
	tw.Flush()
}

// Times tells what the time was spent on.
func (r *Report) Times() string {
	var parts []string
	for _, st := range r.Stages.All() {
		parts = append(parts, fmt.Sprintf("%s %s", st.Name, st.Time.Round(100*time.Microsecond)))
	}
	return "time of all workers: " + strings.Join(parts, ", ")
}

// String tells in one line how much was written.
func (s *Summary) String() string {
	reused := ""
	if s.Reused > 0 {
		reused = fmt.Sprintf(", %d of them as they were", s.Reused)
	}
	return fmt.Sprintf("%s: %s%s, %s of BTF (%s on disk) to %s in %s, %s", s.Output, words.Plural(s.Kernels, "kernel"), reused,
		words.Bytes(s.In), words.Bytes(s.Disk), words.Bytes(s.Out), words.Plural(s.Distinct, "distinct file"), time.Duration(s.Seconds*1e9).Round(10*time.Millisecond))
}

// What folded.reach may be: a column of its own where it is known.
const (
	unjudged escape.Own = ""
	reached  escape.Own = "reached\t"
	guarded  escape.Own = "guarded\t"
)

// folded is a field, type or enumerator that the same kernels lack,
// whoever asks for it and whatever for.
type folded struct {
	reach                   escape.Own
	what                    string
	kinds, objects, kernels []string
}

func fold(all []Unresolved) []*folded {
	var out []*folded
	at := make(map[string]*folded)
	add := func(u *Unresolved, reach escape.Own, kernels []string) {
		if len(kernels) == 0 {
			return
		}
		kind, what, _ := strings.Cut(u.Relo, " ")
		key := strings.Join(append([]string{string(reach), what}, kernels...), "\x00")
		f := at[key]
		if f == nil {
			f = &folded{reach: reach, what: what, kernels: kernels}
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
	for i := range all {
		u := &all[i]
		if u.Result != relo.Poisoned {
			continue
		}
		if len(u.Reached)+len(u.Guarded) == 0 {
			add(u, unjudged, u.Kernels)
		}
		add(u, reached, u.Reached)
		add(u, guarded, u.Guarded)
	}
	slices.SortStableFunc(out, func(a, b *folded) int { return -strings.Compare(string(a.reach), string(b.reach)) }) // reached first
	return out
}

// maxRows is how many poisoned relocations are listed where nobody asked for
// all.
const maxRows = 20
