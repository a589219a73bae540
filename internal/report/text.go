// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
)

const (
	terminal    = 100 // columns
	mostCauses  = 8   // causes shown unless -v is given
	briefCauses = 3
	mostObjects = 3  // objects above which programs are not counted and have no rows without -v
	mostProgram = 12 // rows of objects and programs above which programs have none without -v
)

// Text writes the report for a terminal: how many objects work, the matrix, and what costs most verdicts. With -v it has all causes, programs
// and guards. A brief one has few causes and no matrix, a quiet one only the first line.
func Text(w io.Writer, r *verdict.Report, o Options) error {
	s := summarize(r, o)
	t := &textWriter{Report: s.Report, o: o}
	if o.Verbose {
		t.Report = r
	}
	if o.Baseline != nil {
		t.changes(s)
	}
	if t.line(s.verdict(o.Color)); o.Quiet || o.Baseline != nil && !o.Verbose {
		_, err := io.WriteString(w, t.String())
		return err
	}
	if len(t.Programs) > 0 && (o.Verbose || len(t.Objects) <= mostObjects && !o.Brief) {
		t.line(t.programs())
	}
	if !o.Brief {
		t.matrix()
	}
	for _, text := range s.unloaded() {
		t.line(escape.Text(text))
	}
	most := mostCauses
	causes := slices.Concat(t.Causes, t.Warnings)
	switch {
	case o.Verbose:
		most, causes = len(t.Programs)*100, slices.Concat(t.All(), t.Warnings)
	case o.Brief:
		most, causes = briefCauses, t.Causes
	}
	t.causes(causes, most)
	if o.Brief {
		t.line("Details: -v, or --format html -o report.html")
	} else {
		t.notes(s, len(causes) > most)
	}
	_, err := io.WriteString(w, strings.TrimRight(t.String(), "\n")+"\n")
	return err
}

type textWriter struct {
	strings.Builder
	*verdict.Report
	o Options
}

func (t *textWriter) line(text string) { t.WriteString(text + "\n") }

// changes writes whether something is worse than in the baseline, then what is worse, better and new.
func (t *textWriter) changes(s *summary) {
	all := changes(s.full, t.o.Baseline)
	worse := lostTexts(s.full, t.o.Lost)
	var others []string
	for _, part := range all {
		if part.Title == worseTitle {
			worse = append(worse, part.texts()...)
		} else {
			others = append(others, part.texts()...)
		}
	}
	if len(worse) == 0 {
		t.line("Nothing is worse than " + escape.Text(t.o.Old))
	}
	if n := len(others) - mostCauses; n > 0 && !t.o.Verbose {
		others = append(others[:mostCauses], fmt.Sprintf("and %s: -v", words.Plural(n, "other change")))
	}
	for _, text := range append(worse, others...) {
		t.line(escape.Text(text))
	}
}

// programs counts programs by their worst verdict, and apart those that fail wherever they are loaded.
func (t *textWriter) programs() string {
	n := t.Counts(func(int) bool { return true })
	var parts []string
	everywhere := 0
	for i := range t.Programs {
		row := verdict.ObjectRow{Status: t.Programs[i].Status}
		if sum := row.Sum(); sum.Fails > 0 && sum.Fails == sum.Judged() {
			everywhere++
		}
	}
	if everywhere > 0 {
		parts = append(parts, fmt.Sprintf("%d %s", everywhere, verb(everywhere, "fail")))
	}
	n[rule.Fails] -= everywhere
	for _, s := range []rule.Status{rule.Fails, rule.MayFail, rule.Unknown, rule.Guarded, rule.Unloaded, rule.Other, rule.OK} {
		switch {
		case s == rule.Fails && n[s] > 0:
			parts = append(parts, fmt.Sprintf("%d %s on some kernels", n[s], verb(n[s], "fail")))
		case n[s] > 0:
			parts = append(parts, fmt.Sprintf("%d %s", n[s], s))
		}
	}
	return fmt.Sprintf("%s: %s", words.Plural(len(t.Programs), "program"), strings.Join(parts, ", "))
}

// matrix writes the matrix.
func (t *textWriter) matrix() {
	m := newMatrix(t.Report, t.o.Verbose, t.o.Verbose)
	if len(t.Objects) <= mostObjects && !t.o.Verbose {
		if more := newMatrix(t.Report, true, false); len(more.rows) <= mostProgram {
			m = more
		}
	}
	labels, name := m.labels(t.o.Width), 0
	for _, l := range labels {
		name = max(name, utf8.RuneCountInString(l))
	}
	t.line("")
	for _, b := range m.blocks(name, cmp.Or(t.o.Width, terminal)) {
		t.block(m, b, labels, name)
	}
	if len(m.legend) > 0 {
		t.line(escape.Text(strings.Join(m.legend, "   ")))
	}
	t.line("")
}

// labels returns the names of rows. If they are too long for a terminal of a width, which may be 0 for any, they are shortened: in the
// middle, or else where they still differ.
func (m *matrix) labels(width int) (labels []string) {
	longest := 0
	for i := range m.rows {
		labels = append(labels, escape.Text(m.rows[i].label()))
		longest = max(longest, utf8.RuneCountInString(labels[i]))
	}
	most := max(width*2/5, 12)
	if width == 0 || longest <= most || longest+m.widthOf(block{0, len(m.columns)}) <= width {
		return labels
	}
	all := len(sorted(slices.Clone(labels)))
	var first []string
	for _, head := range []int{(most - 1) / 2, 2, most - 3} {
		var cut []string
		for _, l := range labels {
			cut = append(cut, withoutMiddle(l, head, most-1-head))
		}
		if len(sorted(slices.Clone(cut))) == all {
			return cut
		}
		if first == nil {
			first = cut
		}
	}
	return first
}

// withoutMiddle returns the first and last characters of a text, with … for those between.
func withoutMiddle(text string, head, tail int) string {
	r := []rune(text)
	if len(r) <= head+1+tail {
		return text
	}
	return string(r[:head]) + "…" + string(r[len(r)-tail:])
}

// block writes columns side by side: the machines, the lines, and the rows.
func (t *textWriter) block(m *matrix, b block, labels []string, name int) {
	space := func(i int) string {
		if i > b.from && m.starts(i) {
			return "   "
		}
		return " "
	}
	machines, lines := strings.Repeat(" ", name), strings.Repeat(" ", name)
	for i := b.from; i < b.to; i++ {
		if c := &m.columns[i]; i == b.from || m.starts(i) {
			machines = pad(machines, utf8.RuneCountInString(lines+space(i))) + c.machine
		}
		lines += space(i) + pad(escape.Text(m.columns[i].name), m.width(i))
	}
	t.line(strings.TrimRight(machines, " "))
	t.line(strings.TrimRight(lines, " "))
	for r := range m.rows {
		row := &m.rows[r]
		if !slices.ContainsFunc(row.cells[b.from:b.to], func(c verdict.Cell) bool { return word(c) != otherMachine }) {
			continue
		}
		t.WriteString(pad(labels[r], name))
		for i := b.from; i < b.to; i++ {
			text, width := word(row.cells[i]), m.width(i)
			if i == b.to-1 {
				width = 0
			}
			t.WriteString(space(i) + signOf(row.cells[i]).paint(text, t.o.Color) + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text))))
		}
		t.line("")
	}
}

// pad fills a text with spaces.
func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
}

// chosen returns the indices of at most so many causes, ascending. It prefers causes of cells without an earlier cause, then takes the first
// ones.
func chosen(r *verdict.Report, all []verdict.Cause, most int) (list []int) {
	type cell struct{ object, line int }
	explained := make(map[cell]bool)
	for i := range all {
		news := false
		for _, o := range all[i].Objects {
			for _, w := range all[i].Where {
				at := cell{o, w.Line}
				if c := r.Objects[o].Cells[w.Line]; c.Judged() > c.Works && !explained[at] {
					explained[at], news = true, true
				}
			}
		}
		if news && len(list) < most {
			list = append(list, i)
		}
	}
	for i := 0; i < len(all) && len(list) < most; i++ {
		if !slices.Contains(list, i) {
			list = append(list, i)
		}
	}
	slices.Sort(list)
	return list
}

// causes writes some causes, and what to do about each once.
func (t *textWriter) causes(all []verdict.Cause, most int) {
	said := map[string]bool{"": true}
	for _, i := range chosen(t.Report, all, most) {
		c := &all[i]
		names := mostNames
		if t.o.Verbose {
			names = 1000
		}
		t.line(escape.Text(causeLine(t.Report, c, names)))
		if t.o.Verbose || c.Status == rule.OK {
			t.sentences(c)
		}
		if t.o.Verbose {
			t.details(c)
		}
		if text := advice(c, !t.o.Verbose); !said[text] && !t.o.Brief {
			t.line("   " + escape.Text(text))
			said[text] = true
		}
	}
	if n := len(all) - most; n > 0 {
		t.line(fmt.Sprintf("and %s: -v", words.Plural(n, "other cause")))
	}
}

// sentences writes a line for each subject if there are several reasons and the line of the cause does not have them.
func (t *textWriter) sentences(c *verdict.Cause) {
	if each := subjectReasons(c); len(each) > 2 {
		for _, text := range each {
			t.line("   " + escape.Text(text))
		}
	}
}

// details writes programs, source lines, guards and witnesses.
func (t *textWriter) details(c *verdict.Cause) {
	t.line("   " + escape.Text(programs(t.Report, c.Programs, 1000)))
	if len(c.Sources) > 0 {
		slices.SortFunc(c.Sources, comparePlaces)
		t.line("   " + escape.Text(lines(c.Sources, 1000)))
	}
	for _, text := range t.proofs(c) {
		t.line("   " + escape.Text(text))
	}
}

// proofs returns lines about the evidence: the parts of the kernel's BTF that decided, and the guards before the code.
func (t *textWriter) proofs(c *verdict.Cause) (out []string) {
	var guarded []*rule.Finding
	for i := range c.Subjects {
		if w := c.Subjects[i].Witness; w != "" {
			out = append(out, witness(w))
		}
	}
	for _, p := range c.Programs {
		for i := range t.Programs[p].Findings {
			f := &t.Programs[p].Findings[i]
			alike := f.Guard != nil && f.Code == c.Code && f.Status == c.Status
			if alike && slices.ContainsFunc(f.Kernels, func(k int) bool { return slices.Contains(c.Kernels, k) }) {
				guarded = append(guarded, &f.Finding)
			}
		}
	}
	out = sorted(out)
	for _, text := range guardsText(guarded) {
		out = append(out, "guarded by "+text)
	}
	return out
}

// notes writes what else there is to know.
func (t *textWriter) notes(s *summary, more bool) {
	for _, text := range s.remarks(t.o.Verbose) {
		t.line(escape.Text(text))
	}
	t.rules()
	if t.o.Verbose {
		for _, text := range programNotes(t.Report) {
			t.line(escape.Text("note: " + text))
		}
	} else if more || len(t.Causes) > 0 {
		t.line("Details: -v, or --format html -o report.html")
	}
}

// rules writes which programs have to work. Without -v, it writes only guesses that change verdicts of programs that look alike.
func (t *textWriter) rules() {
	for i := range t.Objects {
		o := &t.Objects[i]
		for j := range o.Rules {
			if t.o.Verbose || o.Rules[j].Guess == verdict.Exclusive {
				t.line(escape.Text(o.Object + ": " + ruleText(t.Report, &o.Rules[j])))
			}
		}
	}
}

// programNotes are the notes of programs, by what they are about, with the programs of each.
func programNotes(r *verdict.Report) (out []string) {
	type key struct{ object, note string }
	var keys []key
	of := make(map[key][]string)
	for i := range r.Programs {
		p := &r.Programs[i]
		for j := range p.Notes {
			k := key{p.Object, note(&p.Notes[j])}
			if of[k] == nil {
				keys = append(keys, k)
			}
			if !slices.Contains(of[k], p.Name) {
				of[k] = append(of[k], p.Name)
			}
		}
	}
	for _, k := range keys {
		out = append(out, fmt.Sprintf("%s: %s: %s", k.object, listed(of[k], mostNames), k.note))
	}
	return out
}
