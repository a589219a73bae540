package generate

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/foreign"
	"github.com/btfgen/btfgen/internal/logtext"
	"github.com/btfgen/btfgen/pkg/relolog"
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
	Objects  int              `json:"objects_skipped"`
	Seconds  float64          `json:"seconds"`
	Stages   map[string]int64 `json:"stage_ns"` // of all workers together

	Unresolved []Unresolved    `json:"unresolved"`
	Skipped    []*corpus.Error `json:"skipped"`
}

// Summarize sums up a run that wrote to out: badObjects were left out of it, and
// it took some time.
func Summarize(out string, rep *Report, badObjects int, took time.Duration) *Summary {
	s := &Summary{
		Output: out, Kernels: len(rep.Kernels), Objects: badObjects, Seconds: took.Seconds(),
		Unresolved: append([]Unresolved{}, rep.Unresolved...), Skipped: append([]*corpus.Error{}, rep.Skipped...), Stages: make(map[string]int64),
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

// JSON writes the summary as one line.
func (s *Summary) JSON(w io.Writer) error {
	return foreign.JSON(w).Encode(s)
}

// Text tells what is unresolved and where, and how much was written. verbose
// lists all kernels and objects, and what the time was spent on.
func (s *Summary) Text(w io.Writer, rep *Report, verbose bool) {
	if len(rep.Unresolved) > 0 {
		foreign.Fprintf(w, "unresolved:\n")
		tw := tabwriter.NewWriter(w, 2, 8, 2, ' ', 0)
		list := fold(rep.Unresolved)
		for i, u := range list {
			if i == maxRows && !verbose {
				foreign.Fprintf(tw, "  … and %d more (-v lists all)\n", len(list)-i)
				break
			}
			foreign.Fprintf(tw, "  %s\t%s\t%s\t%s\t%s\n", u.result, u.what, strings.Join(u.kinds, ","), logtext.Names(u.objects, verbose), logtext.Kernels(u.kernels, len(rep.Kernels), verbose))
		}
		tw.Flush()
	}
	if verbose {
		var parts []string
		for _, st := range rep.Stages.All() {
			parts = append(parts, fmt.Sprintf("%s %s", st.Name, st.Time.Round(100*time.Microsecond)))
		}
		foreign.Fprintf(w, "time of all workers: %s\n", strings.Join(parts, ", "))
	}
	reused := ""
	if s.Reused > 0 {
		reused = fmt.Sprintf(", %d of them as they were", s.Reused)
	}
	foreign.Fprintf(w, "%s: %s%s, %s of BTF (%s on disk) to %s in %s, %s\n", s.Output, logtext.Plural(s.Kernels, "kernel"), reused,
		logtext.Bytes(s.In), logtext.Bytes(s.Disk), logtext.Bytes(s.Out), logtext.Plural(s.Distinct, "distinct file"), time.Duration(s.Seconds*1e9).Round(10*time.Millisecond))
}

// folded is a field, type or enumerator that fails on the same kernels,
// whoever asks for it and whatever for.
type folded struct {
	result                  relolog.Result
	what                    string
	kinds, objects, kernels []string
}

func fold(all []Unresolved) []*folded {
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
