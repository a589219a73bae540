// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/btfgen/btfgen/internal/report/codes"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/pkg/relo"
)

// Results is the order in which results are listed and counted.
var Results = []relo.Result{relo.Resolved, relo.Absent, relo.Poisoned, relo.Ambiguous, relo.Error}

// colors are those of results on terminals.
var colors = map[relo.Result]string{relo.Resolved: "32", relo.Absent: "36", relo.Poisoned: "33", relo.Ambiguous: "35;1", relo.Error: "31;1"}

func (p *Printer) result(r relo.Result) escape.Own {
	if code := colors[r]; p.opts.Color && code != "" {
		return escape.Own("\x1b[" + code + "m" + r.String() + "\x1b[0m")
	}
	return escape.Own(r.String())
}

// outcome returns the result and, where it is not resolved, the reason.
func (p *Printer) outcome(e *relo.Entry) escape.Own {
	if e.Reason == nil {
		return p.result(e.Result)
	}
	return escape.Sprintf("%s: %s", p.result(e.Result), codes.Reason(e.Reason))
}

// single writes an object on the only kernel, unless the filter takes nothing.
func (p *Printer) single(w io.Writer, o *object) {
	counts := make(relo.Counts)
	var taken []int32
	for i := range o.records {
		r := &o.records[i]
		if e := o.entry(r, r.first); p.opts.Filter.Match(e) {
			counts[e.Result]++
			taken = append(taken, int32(i))
		}
	}
	var parts []string
	for _, r := range Results {
		if counts[r] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[r], p.result(r)))
		}
	}
	if len(taken) > 0 {
		escape.Fprintf(w, "%s on %s: %s\n", o.name, p.kernels[0], escape.Own(strings.Join(parts, ", ")))
		p.table(w, o, taken, "  ", arrow)
	}
}

// several writes an object on several kernels.
func (p *Printer) several(w io.Writer, o *object) {
	var differ, same []int32
	for i := range o.records {
		r := &o.records[i]
		switch {
		case !slices.ContainsFunc(r.outcomes(), func(d *outcome) bool { return p.opts.Filter.Match(o.entry(r, d)) }):
		case r.differ != nil:
			differ = append(differ, int32(i))
		default:
			same = append(same, int32(i))
		}
	}
	if len(differ)+len(same) == 0 {
		return
	}
	escape.Fprintf(w, "%s on %d kernels: %d relocations differ, %d are the same\n", o.name, len(o.kernels), len(differ), len(same))
	if len(differ) > 0 {
		escape.Fprintf(w, "  different:\n")
	}
	for i, n := range differ {
		r := &o.records[n]
		if i == 0 || o.placeOf(differ[i-1]) != o.placeOf(n) {
			escape.Fprintf(w, "    %s\n", o.placeOf(n).String())
		}
		p.outcomes(w, o, r)
	}
	if len(same) > 0 {
		escape.Fprintf(w, "  the same:\n")
		p.table(w, o, same, "    ", target)
	}
}

// outcomes writes a relocation that kernels differ on, a line for each outcome.
func (p *Printer) outcomes(w io.Writer, o *object, r *record) {
	e := o.entry(r, r.first)
	escape.Fprintf(w, "      #%d  insn %d  <%s>  %s\n", e.Index, e.Insn, e.Kind, Spec(e.Kind, &e.Local))
	if p.opts.Verbose && e.Source != "" {
		escape.Fprintf(w, "          source        %s\n", e.Source)
	}
	tw := newTable(w)
	for i, d := range r.differ.outcomes {
		e := &d.Entry
		var numbers []int
		for k, of := range r.differ.of {
			if int(of) == i {
				numbers = append(numbers, o.kernels[k]+1)
			}
		}
		escape.Fprintf(tw, "          [%s]\t%s\t%s\t%s\n", ranges(numbers), target(e), change(e), p.outcome(e))
		if p.opts.Verbose {
			tw.Flush()
			candidates(w, e, "              ")
		}
	}
	tw.Flush()
}

// table writes a line for each of some records, with the outcome on the first kernel, below the name of its program.
func (p *Printer) table(w io.Writer, o *object, records []int32, indent string, target func(*relo.Entry) string) {
	tw := newTable(w)
	for i, n := range records {
		r := &o.records[n]
		e := o.entry(r, r.first)
		if i == 0 || o.placeOf(records[i-1]) != o.placeOf(n) {
			tw.Flush()
			escape.Fprintf(w, "%s%s\n", indent, o.placeOf(n).String())
		}
		escape.Fprintf(tw, "%s  #%d\tinsn %d\t<%s>\t%s\t%s\t%s\t%s\n", indent, e.Index, e.Insn, e.Kind, Spec(e.Kind, &e.Local), target(e), change(e), p.outcome(e))
		if p.opts.Verbose {
			tw.Flush() // details are lines of their own, not columns
			if e.Source != "" {
				escape.Fprintf(w, "%s      source        %s\n", indent, e.Source)
			}
			candidates(w, e, indent+"      ")
		}
	}
	tw.Flush()
}

func newTable(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 8, 2, ' ', 0) }

// String names the place.
func (p place) String() string {
	if p.program == "" {
		return p.section
	}
	return fmt.Sprintf("%s (%s)", p.program, p.section)
}

// arrow has the target and how many candidates are just like it.
func arrow(e *relo.Entry) string {
	if e.Target == nil {
		return ""
	}
	out := "→ " + Spec(e.Kind, e.Target)
	n := 0
	for i := range e.Candidates {
		if c := &e.Candidates[i]; c.Match && specText(e.Kind, &c.Spec) == specText(e.Kind, e.Target) {
			n++
		}
	}
	if n > 1 {
		out += fmt.Sprintf(" × %d", n)
	}
	return out
}

// candidates writes each candidate with its value or with the reason why it does not match. Those that differ only by
// type ID are folded.
func candidates(w io.Writer, e *relo.Entry, indent string) {
	for _, alike := range words.Group(e.Candidates, func(c *relo.Candidate) any { return show(e, c) }) {
		times := ""
		if len(alike) > 1 {
			times = fmt.Sprintf(" × %d", len(alike))
		}
		s := show(e, &alike[0])
		escape.Fprintf(w, "%s%s[%d] %s%s\n", indent, s.verdict, alike[0].TypeID, s.text, times)
	}
}

// shown is what is written of a candidate, apart from its type ID.
type shown struct{ verdict, text string }

func show(e *relo.Entry, c *relo.Candidate) shown {
	s := shown{"matching      ", specText(e.Kind, &c.Spec)}
	switch {
	case !c.Match:
		s.verdict = "non-matching  "
		s.text += ": " + cmp.Or(codes.Reason(c.Reason), "no reason known")
	case c.Value != nil && e.Kind != relo.TargetTypeID:
		s.text += " = " + value(e.Kind, &c.Spec, *c.Value)
	}
	return s
}

// Offset returns the offset of a field in bytes or, in libbpf's way, in bytes
// and bits ("20.3"), and "" for what is no field.
func Offset(s *relo.Spec) string {
	switch {
	case s.BitOffset != nil:
		return fmt.Sprintf("%d.%d", *s.BitOffset/8, *s.BitOffset%8)
	case s.Offset != nil:
		return fmt.Sprint(*s.Offset)
	}
	return ""
}

// Spec returns a spec in libbpf's notation:
// "[86] struct task_struct.fs (0:121 @ offset 1960)". Types of a module are
// followed by its name in brackets.
func Spec(kind relo.Kind, s *relo.Spec) string {
	return fmt.Sprintf("[%d] %s", s.TypeID, specText(kind, s))
}

// specText is Spec without the type ID.
func specText(kind relo.Kind, s *relo.Spec) string {
	out := s.Name(kind)
	if off := Offset(s); off != "" {
		out += fmt.Sprintf(" (%s @ offset %s)", s.Raw, off)
	}
	if s.Module != nil && *s.Module != "" {
		out += " [" + *s.Module + "]"
	}
	return out
}

// value returns the value of a relocation. An enumerator has a sign if its enum has one.
func value(kind relo.Kind, s *relo.Spec, v uint64) string {
	switch {
	case kind != relo.EnumvalValue || s.Unsigned == 64:
		return fmt.Sprint(v)
	case s.Unsigned == 32:
		return fmt.Sprint(uint32(v))
	}
	return fmt.Sprint(int64(v))
}

// change returns "1960 → 1816", or "" where nothing is put in.
func change(e *relo.Entry) string {
	if e.New == nil {
		return ""
	}
	target := e.Target
	if target == nil {
		target = &e.Local
	}
	return value(e.Kind, &e.Local, e.Old) + " → " + value(e.Kind, target, *e.New)
}

// target is the target without what differs from kernel to kernel.
func target(e *relo.Entry) string {
	if e.Target == nil {
		return ""
	}
	out := "→ " + e.Target.Name(e.Kind)
	if e.Target.Module != nil && *e.Target.Module != "" {
		out += " [" + *e.Target.Module + "]"
	}
	return out
}

// ranges writes ascending numbers as "1-3 5".
func ranges(n []int) string {
	var parts []string
	for i := 0; i < len(n); {
		j := i
		for j+1 < len(n) && n[j+1] == n[j]+1 {
			j++
		}
		switch {
		case j == i:
			parts = append(parts, fmt.Sprint(n[i]))
		default:
			parts = append(parts, fmt.Sprintf("%d-%d", n[i], n[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, " ")
}
