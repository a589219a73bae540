// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/fatih/color"

	"github.com/btfgen/btfgen/internal/report/codes"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/pkg/relo"
)

// Options say how logs are written. The zero value is plain text of all
// entries.
type Options struct {
	Filter  Filter
	Verbose bool // sources, candidates and reasons as well
	Color   bool // results in colour
}

// Results is the order in which results are listed and counted.
var Results = []relo.Result{relo.Resolved, relo.Absent, relo.Poisoned, relo.Ambiguous, relo.Error}

// painter colours results. It does not depend on what standard output is.
type painter map[relo.Result]*color.Color

func newPainter(on bool) painter {
	p := painter{
		relo.Resolved:  color.New(color.FgGreen),
		relo.Absent:    color.New(color.FgCyan),
		relo.Poisoned:  color.New(color.FgYellow),
		relo.Ambiguous: color.New(color.FgMagenta, color.Bold),
		relo.Error:     color.New(color.FgRed, color.Bold),
	}
	for _, c := range p {
		if on {
			c.EnableColor()
		} else {
			c.DisableColor()
		}
	}
	return p
}

func (p painter) result(r relo.Result) escape.Own {
	if c := p[r]; c != nil {
		return escape.Own(c.Sprint(r.String()))
	}
	return escape.Own(r.String())
}

// outcome returns the result and, where it is not resolved, the reason.
func (p painter) outcome(e *relo.Entry) escape.Own {
	if e.Reason == nil {
		return p.result(e.Result)
	}
	return escape.Sprintf("%s: %s", p.result(e.Result), codes.Reason(e.Reason))
}

// Write writes one log. Where the filter takes nothing, it writes nothing.
func Write(w io.Writer, l *relo.Log, o Options) error {
	p := newPainter(o.Color)
	counts := make(relo.Counts)
	var entries []*relo.Entry
	for i := range l.Entries {
		if e := &l.Entries[i]; o.Filter.Match(e) {
			counts[e.Result]++
			entries = append(entries, e)
		}
	}
	if len(entries) == 0 {
		return nil
	}
	if _, err := escape.Fprintf(w, "%s on %s: %s\n", l.Object, l.Kernel, p.counts(counts)); err != nil {
		return err
	}
	var body bytes.Buffer
	p.table(&body, entries, "  ", arrow, o.Verbose)
	_, err := w.Write(body.Bytes())
	return err
}

// table writes a line for each entry, below the name of its program.
func (p painter) table(w io.Writer, entries []*relo.Entry, indent string, target func(*relo.Entry) string, verbose bool) {
	tw := newTable(w)
	for i, e := range entries {
		if i == 0 || !sameProgram(entries[i-1], e) {
			tw.Flush()
			escape.Fprintf(w, "%s%s\n", indent, program(e))
		}
		escape.Fprintf(tw, "%s  #%d\tinsn %d\t<%s>\t%s\t%s\t%s\t%s\n", indent, e.Index, e.Insn, e.Kind, Spec(e.Kind, &e.Local), target(e), change(e), p.outcome(e))
		if verbose {
			tw.Flush() // details are lines of their own, not columns
			details(w, e, indent+"      ")
		}
	}
	tw.Flush()
}

func sameProgram(a, b *relo.Entry) bool { return a.Program == b.Program && a.Section == b.Section }

func newTable(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 8, 2, ' ', 0) }

// program names where an instruction is.
func program(e *relo.Entry) string {
	if e.Program == "" {
		return e.Section
	}
	return fmt.Sprintf("%s (%s)", e.Program, e.Section)
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

func (p painter) counts(c relo.Counts) escape.Own {
	var parts []string
	for _, r := range Results {
		if c[r] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c[r], p.result(r)))
		}
	}
	return escape.Own(strings.Join(parts, ", "))
}

// details writes what one line has no room for: the source line, and each
// candidate with its value or with the reason why it does not match. Those
// that differ only by type ID are folded.
func details(w io.Writer, e *relo.Entry, indent string) {
	if e.Source != "" {
		escape.Fprintf(w, "%ssource        %s\n", indent, e.Source)
	}
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
		s.text += " = " + value(e.Kind, *c.Value)
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

// signed kinds are read as numbers with a sign.
func value(kind relo.Kind, v uint64) string {
	if kind == relo.EnumvalValue && int64(v) < 0 {
		return fmt.Sprint(int64(v))
	}
	return fmt.Sprint(v)
}

// change returns "1960 → 1816", or "" where nothing is put in.
func change(e *relo.Entry) string {
	if e.New == nil {
		return ""
	}
	return value(e.Kind, e.Old) + " → " + value(e.Kind, *e.New)
}
