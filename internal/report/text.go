// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/btfgen/btfgen/internal/check"
	"github.com/btfgen/btfgen/internal/foreign"
	"github.com/btfgen/btfgen/internal/logtext"
)

// Options of the text and Markdown forms. The zero value is the short form.
type Options struct {
	Verbose bool // guards, notes, and all ranges
	Color   bool // of the text form, for terminals
}

// marks stand for verdicts in a matrix.
var marks = map[check.Status]foreign.Own{
	check.OK: "·", check.Guarded: "g", check.Other: " ", check.Unknown: "u", check.MayFail: "?", check.Fails: "X",
}

var colors = map[check.Status]string{
	check.OK: "32", check.Guarded: "36", check.Unknown: "35", check.MayFail: "33", check.Fails: "31",
}

// matrix is a report with equal neighbours folded.
type matrix struct {
	r       *check.Report
	ordered []int
	columns []span
	rows    []int // programs that are not ok everywhere
	fine    int   // the others
}

func newMatrix(r *check.Report) *matrix {
	m := &matrix{r: r, ordered: order(r)}
	m.columns = spans(r, m.ordered, func(a, b int) bool {
		for i := range r.Programs {
			if r.Programs[i].Status[a] != r.Programs[i].Status[b] {
				return false
			}
		}
		return true
	})
	for i := range r.Programs {
		w := check.OK
		for _, s := range r.Programs[i].Status {
			if s != check.Other {
				w = max(w, s)
			}
		}
		if w == check.OK {
			m.fine++
		} else {
			m.rows = append(m.rows, i)
		}
	}
	return m
}

func (m *matrix) at(row, col int) check.Status {
	return m.r.Programs[row].Status[m.columns[col].kernels[0]]
}

// maxColumns is how wide a matrix is worth reading.
const maxColumns = 80

// Text writes the report for a terminal.
func Text(w io.Writer, r *check.Report, o Options) error {
	t := &text{Writer: bufio.NewWriter(w), o: o, m: newMatrix(r)}
	t.summary()
	if len(t.m.rows) > 0 && len(t.m.columns) <= maxColumns {
		t.matrix()
	}
	t.causes()
	if o.Verbose {
		t.notes()
	}
	return t.Flush()
}

type text struct {
	*bufio.Writer
	o Options
	m *matrix
}

func (t *text) paint(s check.Status, str foreign.Own) foreign.Own {
	if c := colors[s]; t.o.Color && c != "" {
		return foreign.Own("\x1b["+c+"m") + str + "\x1b[0m"
	}
	return str
}

func summaryLine(r *check.Report) string {
	objects := make(map[string]bool)
	for i := range r.Programs {
		objects[r.Programs[i].Object] = true
	}
	n := r.Counts()
	var parts []string
	for _, s := range []check.Status{check.Fails, check.MayFail, check.Unknown, check.Guarded, check.Other, check.OK} {
		if n[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[s], s))
		}
	}
	return fmt.Sprintf("%s of %s on %s: %s", logtext.Plural(len(r.Programs), "program"), logtext.Plural(len(objects), "object"),
		logtext.Plural(len(r.Kernels), "kernel"), strings.Join(parts, ", "))
}

func (t *text) summary() { foreign.Fprintf(t, "%s\n", summaryLine(t.m.r)) }

// matrix writes one line per program and one mark per range of kernels.
func (t *text) matrix() {
	m := t.m
	foreign.Fprintf(t, "\nkernels:\n")
	for i, c := range m.columns {
		foreign.Fprintf(t, "  %3d  %s\n", i+1, c.label(m.r))
	}
	width := 0
	name := func(p *check.Program) foreign.Own { return foreign.Sprintf("  %s (%s)", p.Name, p.Section) }
	for _, i := range m.rows {
		width = max(width, len(name(&m.r.Programs[i])))
	}
	foreign.Fprintf(t, "\nprograms (%s ok  g guarded  u unknown  ? may fail  X fails):\n", marks[check.OK])
	for digit := range len(fmt.Sprint(len(m.columns))) {
		line := strings.Repeat(" ", width+1)
		for i := range m.columns {
			n := fmt.Sprintf("%*d", len(fmt.Sprint(len(m.columns))), i+1)
			line += string(n[digit])
		}
		foreign.Fprintf(t, "%s\n", strings.TrimRight(line, " "))
	}
	last := ""
	for _, i := range m.rows {
		p := &m.r.Programs[i]
		if p.Object != last {
			last = p.Object
			foreign.Fprintf(t, "%s\n", last)
		}
		foreign.Fprintf(t, "%-*s ", width, name(p))
		for c := range m.columns {
			s := m.at(i, c)
			t.WriteString(string(t.paint(s, marks[s])))
		}
		foreign.Fprintf(t, "\n")
	}
	if m.fine > 0 {
		foreign.Fprintf(t, "%s ok on every kernel\n", logtext.Plural(m.fine, "program"))
	}
}

// causes writes what costs kernels, most first.
func (t *text) causes() {
	least, most := check.Unknown, 3
	if t.o.Verbose {
		least, most = check.Guarded, 1000
	}
	l := t.m.r.Causes(least)
	if len(l) == 0 {
		return
	}
	foreign.Fprintf(t, "\ncauses:\n")
	for _, c := range l {
		foreign.Fprintf(t, "  %s: %s %s: %s\n", t.paint(c.Status, foreign.Own(c.Verdict())), topicName(c.Topic), c.Subject, c.Reason)
		foreign.Fprintf(t, "    %s\n", where(t.m.r, t.m.ordered, c.Kernels, most))
		foreign.Fprintf(t, "    %s\n", programs(t.m.r, c.Programs, 2*most))
		if len(c.Sources) > 0 {
			foreign.Fprintf(t, "    %s\n", strings.Join(c.Sources[:min(len(c.Sources), most)], ", "))
		}
		if t.o.Verbose {
			t.guards(&c)
		}
	}
}

// guards writes what keeps the verifier away from what a cause is about.
func (t *text) guards(c *check.Cause) {
	seen := make(map[string]bool)
	for _, p := range c.Programs {
		for _, f := range t.m.r.Programs[p].Findings {
			if f.Guard != "" && f.Status == c.Status && f.Subject == c.Subject && f.Reason == c.Reason && !seen[f.Guard] {
				seen[f.Guard] = true
				foreign.Fprintf(t, "    guarded by %s\n", f.Guard)
			}
		}
	}
}

func (t *text) notes() {
	head := false
	for i := range t.m.r.Programs {
		p := &t.m.r.Programs[i]
		for _, n := range p.Notes {
			if !head {
				foreign.Fprintf(t, "\nnotes:\n")
				head = true
			}
			foreign.Fprintf(t, "  %s: %s: %s %s\n", p.Object, p.Name, n.Subject, n.Reason)
		}
	}
}

// topicName is a topic in words.
func topicName(t check.Topic) string {
	switch t {
	case check.TopicCORE:
		return "relocation"
	case check.TopicTarget:
		return "attach to"
	}
	return strings.ReplaceAll(string(t), "_", " ")
}
