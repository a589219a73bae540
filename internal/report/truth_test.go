// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
)

// fleet is an object on kernels of several machines and distributions, by the letters of each: · works, X fails, ? may fail, - is for other
// machines.
func fleet(kernels ...string) *verdict.Report {
	r := &verdict.Report{Programs: []verdict.ProgramRow{{Object: "tool.o", Name: "p"}}}
	row := verdict.ObjectRow{Object: "tool.o", Programs: []int{0}}
	var fails, may []int
	for k, text := range kernels {
		name, letter, _ := strings.Cut(text, " ")
		r.Kernels = append(r.Kernels, verdict.Column{Name: name})
		s := map[string]rule.Status{"·": rule.OK, "X": rule.Fails, "?": rule.MayFail, "-": rule.Other}[letter]
		switch s {
		case rule.Fails:
			fails = append(fails, k)
		case rule.MayFail:
			may = append(may, k)
		}
		row.Status = append(row.Status, s)
	}
	p := &r.Programs[0]
	for s, on := range map[rule.Status][]int{rule.Fails: fails, rule.MayFail: may} {
		if on != nil {
			p.Findings = append(p.Findings, verdict.KernelFinding{Finding: rule.Finding{Status: s, Code: rule.KsymMissing, Subject: "runqueues"}, Kernels: on})
		}
	}
	row.Load, p.Status = row.Status, row.Status
	if on := append(slices.Clone(fails), may...); on != nil {
		slices.Sort(on)
		row.Decides = []verdict.Decider{{Kernels: on}}
	}
	verdict.SortFindings(p.Findings)
	r.Objects = []verdict.ObjectRow{row}
	r.Summarize()
	return r
}

// TestUntrueSentences has verdicts of which a report once said something that is not so, or was misread.
func TestUntrueSentences(t *testing.T) {
	for _, tt := range []struct {
		was     string // what a report said
		kernels []string
		minima  string
		where   string // of the first cause
	}{
		{"on all arm, arm64, i386 and 3 more kernels", []string{
			"debian/12/arm/6.1.0-1 X", "debian/12/arm64/6.1.0-1 X", "debian/12/i386/6.1.0-1 X", "debian/12/x86_64/6.1.0-1 -"},
			"arm64 never (6.1 tried), arm never (6.1 tried), i386 never (6.1 tried)", "every kernel"},
		{"on 6.12 and older", []string{
			"debian/11/x86_64/5.10.0-1 ·", "debian/13/x86_64/6.12.1 ·", "debian/11/arm64/5.10.0-1 ·", "debian/13/arm64/6.12.1 ·",
			"debian/13/arm/6.12.1 X", "debian/14/arm/6.18.1 ·", "debian/10/ppc64le/4.19.0-1 X", "debian/13/ppc64le/6.12.1 X"},
			"x86_64 5.10 (the oldest here), arm64 5.10 (the oldest here), arm 6.18 (6.12 fails), ppc64le never (4.19, 6.12 tried)", "arm 6.12; all ppc64le"},
		{"on 5.10 only, of Android's", []string{
			"android/12/arm64/5.10.1 X", "debian/11/arm64/5.10.0-1 ·", "debian/11/x86_64/5.10.0-1 ·", "debian/12/arm64/6.1.0-1 ·"},
			"x86_64 5.10 (the oldest here), arm64 6.1 (5.10 1 of 2)", "arm64 5.10 (1 of 2)"},
		{"on 5.10 only, of one RT kernel of three", []string{
			"debian/11/x86_64/5.10.0-1 ·", "debian/11/x86_64/5.10.0-2 ·", "debian/11/x86_64/5.10.0-1-rt X", "debian/12/x86_64/6.1.0-1 ·"},
			"x86_64 6.1 (5.10 2 of 3)", "x86_64 5.10 (1 of 3)"},
		{"none between 6.12 and 6.16", []string{
			"debian/11/x86_64/5.10.0-1 ·", "debian/13/x86_64/6.12.1 ·", "debian/14/x86_64/6.16.1 ·", "debian/13/arm/6.12.1 X", "debian/13/ppc64le/6.12.1 X"},
			"x86_64 5.10 (the oldest here), arm never (6.12 tried), ppc64le never (6.12 tried)", "arm 6.12; ppc64le 6.12"},
		{"Linux 6.18 and later, of the running kernel alone", []string{"debian/14/x86_64/6.18.1 ·"}, "x86_64 6.18 (the oldest here)", ""},
		{"Linux 4.18 and later, of a distribution that took over newer BPF", []string{
			"rhel/8/x86_64/4.18.0-553 ·", "centos/8/x86_64/4.18.0-147 X", "ubuntu/20.04/x86_64/5.4.0-1 X", "debian/11/x86_64/5.10.0-1 ·"},
			"x86_64 5.10 (4.18 1 of 2, 5.4 fails)", "x86_64 4.18 (1 of 2), 5.4"},
	} {
		r := fleet(tt.kernels...)
		if got := minimaText(r, &r.Objects[0]); got != tt.minima {
			t.Errorf("%s: %s, want %s", tt.was, got, tt.minima)
		}
		got := ""
		if len(r.Causes) > 0 {
			got = where(r, &r.Causes[0])
		}
		if got != tt.where {
			t.Errorf("%s: %s, want %s", tt.was, got, tt.where)
		}
		for _, format := range []string{"text", "markdown", "html", "min-kernel", "json"} {
			var b strings.Builder
			if err := Formats[format](&b, r, Options{}); err != nil {
				t.Fatal(err)
			}
			if m := regexp.MustCompile(`and later|and older|and newer|none between|[Oo]lder ones|more kernels`).FindString(b.String()); m != "" {
				t.Errorf("%s: %s has %q", tt.was, format, m)
			}
		}
	}
}

// TestReadBack reads what sentences say of lines, and compares it with the verdicts: the lines of a cause, and those of minima.
func TestReadBack(t *testing.T) {
	const letters = "·X?-"
	kernels := []string{"a/1/x86_64/5.4.1", "a/1/x86_64/5.10.1", "a/1/x86_64/6.1.1", "a/1/x86_64/6.1.2", "a/1/x86_64/6.12.1", "a/1/arm64/6.1.1"}
	runes := []rune(letters)
	for n := range 1 << (2 * len(kernels)) {
		var names []string
		for k := range kernels {
			names = append(names, kernels[k]+" "+string(runes[n>>(2*k)&3]))
		}
		r := fleet(names...)
		o := &r.Objects[0]
		for i := range r.Causes {
			c := &r.Causes[i]
			want := make(map[int]bool)
			for _, k := range c.Kernels {
				want[k] = true
			}
			readWhere(t, r, o, where(r, c), want, fmt.Sprint(names))
		}
		for i := range o.Minima {
			readMinimum(t, r, o, &o.Minima[i], fmt.Sprint(names))
		}
		if t.Failed() {
			return
		}
	}
}

// readWhere reads the lines of a cause: which of the kernels that the object is for it is about.
func readWhere(t *testing.T, r *verdict.Report, o *verdict.ObjectRow, text string, want map[int]bool, what string) {
	t.Helper()
	count := make(map[int]int) // by line; all of them is -1
	all := func(machine string) {
		for i, l := range r.Lines {
			if l.Machine == machine || machine == "" {
				count[i] = -1
			}
		}
	}
	for part := range strings.SplitSeq(text, "; ") {
		machine, lines, _ := strings.Cut(part, " ")
		switch {
		case part == "every kernel":
			all("")
			continue
		case machine == "all":
			all(lines)
			continue
		}
		for name := range strings.SplitSeq(lines, ", ") {
			n := -1
			if at, some, ok := strings.Cut(name, " ("); ok {
				name = at
				fmt.Sscanf(some, "%d of", &n)
			}
			from, to, isRange := strings.Cut(name, " to ")
			in := false
			for i, l := range r.Lines {
				if l.Machine != machine {
					continue
				}
				if l.Name == from {
					in = true
				}
				if in {
					count[i] = n
				}
				if !isRange || l.Name == to {
					in = false
				}
			}
		}
	}
	for i, l := range r.Lines {
		about, judged := 0, 0
		for _, k := range l.Kernels {
			if want[k] {
				about++
			}
			if o.Status[k].Judged() {
				judged++
			}
		}
		if n := count[i]; judged > 0 && n != about && (n != -1 || about != judged) {
			t.Errorf("%s: %q says %d of line %v, want %d", what, text, n, l, about)
		}
	}
}

// readMinimum reads a minimum: the object works on all kernels of the lines that it names, or fails on none.
func readMinimum(t *testing.T, r *verdict.Report, o *verdict.ObjectRow, m *verdict.Minimum, what string) {
	t.Helper()
	text := minimumText(r, o, m)
	words := regexp.MustCompile(`^(\S+) (?:(never|some kernels)|(perhaps )?(\S+?)(?: (only)| to (\S+))?(?: or perhaps (\S+))?)(?: \((.*)\))?$`).FindStringSubmatch(text)
	if words == nil || words[1] != m.Machine {
		t.Fatalf("%s: %q", what, text)
	}
	certain, perhaps, until := words[4], words[7], words[6]
	if words[3] != "" {
		certain, perhaps = "", words[4]
	}
	if words[5] != "" {
		until = words[4]
	}
	in, mild := false, false
	for i, l := range r.Lines {
		c := o.Cells[i]
		if l.Machine != m.Machine {
			continue
		}
		in, mild = in || l.Name == certain, mild || l.Name == perhaps || l.Name == certain
		switch {
		case c.Judged() == 0:
		case words[2] == "never" && c.Works > 0, in && !c.AllWork(), mild && c.Fails > 0:
			t.Errorf("%s: %q, and %s has %+v", what, text, l.Name, c)
		case words[2] == "" && !mild && c.AllWork() && !strings.Contains(words[8], l.Name) && !strings.Contains(words[8], " to "):
			t.Errorf("%s: %q does not name %s", what, text, l.Name)
		}
		if l.Name == until {
			in, mild = false, false
			break
		}
	}
	if strings.Contains(text, "the oldest here") != (m.Oldest) {
		t.Errorf("%s: %q", what, text)
	}
}
