// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/pkg/kernel"
	"github.com/btfgen/btfgen/pkg/relo"
)

// several judges objects that are written down, "name verdicts" each, with one program and a letter per kernel: · works, f lacks a field, a may
// lack its target, - is for other machines. The kernels are 5.4, 5.10, 6.1, 6.12 and one without a release.
func several(t *testing.T, p Policy, objects string) *Report {
	t.Helper()
	setup := Setup{Loaders: rule.Loaders(), Policy: p}
	rep := new(Report)
	for k, v := range []string{"5.4.0", "5.10.0", "6.1.0", "6.12.0", "z-lts"} {
		key := kernel.Key{ID: []string{"debian", "zz"}[k/4], VersionID: "1", Arch: "x86_64", Release: v}
		rep.Kernels = append(rep.Kernels, NewColumn(key.String(), key, "", nil))
	}
	found := map[rune]rule.Finding{
		'f': {Status: rule.Fails, Code: relo.FieldMissing, Subject: "struct s.f"}, 'a': {Status: rule.MayFail, Attach: true, Code: rule.AttachTargetUnlisted},
		'-': {Status: rule.Other, Code: rule.AnalysisMachine},
	}
	same := make(map[string][]rule.Status) // verdicts on programs
	var letters []string                   // one letter per kernel, for each object
	for line := range strings.SplitSeq(objects, ", ") {
		f := strings.Fields(line)
		o := rule.NewObject(f[0], new(bpfobj.Code), nil)
		o.Programs = []bpfobj.Program{{Section: "kprobe/f", Attach: bpfobj.SectionOf("kprobe/f"), AutoLoad: true}}
		o.Funcs = []bpfobj.Function{{Name: "p"}}
		setup.Objects, letters = append(setup.Objects, o), append(letters, strings.ReplaceAll(f[1], "·", "."))
		row := ProgramRow{Object: f[0], Name: "p", Section: "kprobe/f", AutoLoad: true}
		for c, finding := range found {
			if kernels := slices.DeleteFunc([]int{0, 1, 2, 3, 4}, func(k int) bool { return []rune(f[1])[k] != c }); len(kernels) > 0 {
				row.Findings = append(row.Findings, KernelFinding{finding, kernels})
			}
		}
		row.Sum(len(rep.Kernels))
		for _, verdicts := range []*[]rule.Status{&row.Status, &row.Load} {
			if key := signs(*verdicts); same[key] == nil {
				same[key] = *verdicts
			} else {
				*verdicts = same[key]
			}
		}
		SortFindings(row.Findings)
		rep.Programs = append(rep.Programs, row)
	}
	needs := func(k, object int) []rule.Finding {
		if letters[object][k] == '-' {
			return []rule.Finding{found['-']}
		}
		return nil
	}
	if err := setup.Judge(t.Context(), rep, needs); err != nil {
		t.Fatal(err)
	}
	return rep
}

// signs writes verdicts as several reads them, with o for what is not loaded and u for what is unknown.
func signs(l []rule.Status) string {
	var b strings.Builder
	for _, s := range l {
		b.WriteRune([]rune{rule.OK: '·', rule.Guarded: 'g', rule.Unloaded: 'o', rule.Other: '-', rule.Unknown: 'u', rule.MayFail: 'a', rule.Fails: 'f'}[s])
	}
	return b.String()
}

// TestSharedVerdicts checks that leaving out a program does not change the verdicts of another one, although they share a slice.
func TestSharedVerdicts(t *testing.T) {
	rep := several(t, policy(t, "when x.o:=<2"), "x.o ·····, y.o ·····, z.o ·····")
	x, y, z := &rep.Programs[0], &rep.Programs[1], &rep.Programs[2]
	if signs(x.Status) != "oooou" || signs(y.Status) != "·····" || signs(y.Load) != "·····" || &y.Status[0] != &z.Load[0] {
		t.Errorf("%s, %s, %s, or not the same slice", signs(x.Status), signs(y.Status), signs(z.Status))
	}
}

// TestVariants has options about whole objects with the verdicts that follow, of objects, then of variants, and the gaps.
func TestVariants(t *testing.T) {
	for _, tt := range []struct{ policy, objects, want, gaps string }{
		{"", "x.o ·····", "x.o ·····", ""},
		{"when *=<2", "x.o ·····", "x.o oooou", "everything 0 1 2 3"},
		{"when x.o:=<2", "x.o fffff", "x.o oooou", "everything 0 1 2 3"},
		{"when x.o:=>=6.1", "x.o ff···", "x.o oo··u", "everything 0 1"},
		{"when x.o:p=>=6.1;when x.o:p=id=zz", "x.o ff···", "x.o oo···", "everything 0 1"},
		{"when x.o:p=>=6.1;when x.o:p=id=zz", "x.o ff--f", "x.o oo--f", "everything 0 1"},
		{"when x.o:=>=6.1", "x.o ff···, y.o ····f", "x.o oo··u, y.o ····f", ""},
		{"when x.o:=<2;when y.o:=<2", "x.o -----, y.o ··---", "x.o -----, y.o oo---", "everything 0 1"},
		{"", "x.o -----", "x.o -----", "everything 0 1 2 3 4"},
		// Variants: one that does not work is not loaded where another is better.
		{"one-of x.o:,y.o:", "x.o ··fff, y.o ff···", "x.o ··ooo, y.o oo···, {x,y}.o ·····", ""},
		{"one-of x.o:,y.o:", "x.o ·affa, y.o f·fa-", "x.o ·ofoa, y.o o·oa-, {x,y}.o ··faa", ""},
		{"one-of x.o:,x_v61.o:;when x.o:=<6.1;when x_v61.o:=>=6.1", "x.o ··f··, x_v61.o ff·ff", "x.o ··oou, x_v61.o oo·fo, x{,_v61}.o ···fu", ""},
		{"one-of x.o:,x_v61.o:;when x.o:=<5.5;when x_v61.o:=>=6.1", "x.o ·····, x_v61.o ff···, y.o ·····",
			"x.o ·ooou, x_v61.o oo··o, y.o ·····, x{,_v61}.o ·o··u", "x{,_v61}.o 1"},
		{"one-of a.o:+b.o:,c.o:", "a.o ·f···, b.o ·ff··, c.o f·fff", "a.o ·o···, b.o ·of··, c.o o·ooo, {a.o+b.o,c.o} ··f··", ""},
		{"one-of x.o:,no.o:", "x.o ··fff", "x.o ··fff", ""},
		{"one-of tool!a:,tool!b:", "tool!a ··fff, tool!b ff···, tool!c ·····", "tool!a ··ooo, tool!b oo···, tool!c ·····, {tool!a,tool!b} ·····, tool ·····", ""},
	} {
		var p Policy
		if tt.policy != "" {
			p = policy(t, strings.Split(tt.policy, ";")...)
		}
		rep := several(t, p, tt.objects)
		var got, gaps []string
		for _, rows := range [][]ObjectRow{rep.Objects, rep.Variants, rep.Executables} {
			for i := range rows {
				got = append(got, rows[i].Object+" "+signs(rows[i].Status))
			}
		}
		if s := strings.Join(got, ", "); s != tt.want {
			t.Errorf("%s: %s:\n%s\nwant\n%s", tt.policy, tt.objects, s, tt.want)
		}
		for _, g := range rep.Gaps(func(int) bool { return true }) {
			name := "everything"
			if g.Row != nil {
				name = g.Row.Object
			}
			gaps = append(gaps, strings.Trim(fmt.Sprint(name, g.Kernels), "[]"))
		}
		if s := strings.ReplaceAll(strings.Join(gaps, ", "), "[", " "); s != tt.gaps {
			t.Errorf("%s: %s: gaps %s, want %s", tt.policy, tt.objects, s, tt.gaps)
		}
		for i := range rep.Programs {
			p := &rep.Programs[i]
			for k, s := range p.Status {
				for _, f := range p.Findings {
					if s == rule.Unloaded && slices.Contains(f.Kernels, k) {
						t.Errorf("%s: %s: %s has a finding where it is not loaded", tt.policy, tt.objects, p.Object)
					}
				}
			}
			if p.Status[4] == rule.Unknown && !slices.ContainsFunc(p.Findings, func(f KernelFinding) bool { return f.Code == rule.AnalysisWhen }) {
				t.Errorf("%s: %s: nothing says why %s is unknown", tt.policy, tt.objects, p.Object)
			}
		}
	}
}

// TestVariantOptions has options about whole objects that are refused, and some that match nothing.
func TestVariantOptions(t *testing.T) {
	for value, want := range map[string]string{
		"one-of x.o:":        "two or more alternatives",
		"one-of x.o:,y":      "want [OBJECT:]NAME",
		"one-of x,y.o:":      "want OBJECT:",
		"one-of x.o:,:":      "want OBJECT:",
		"one-of [.o:,y.o:":   "syntax error",
		"when x.o:,y.o:=>=5": "one object",
		"when :=>=5":         "want OBJECT:",
		"optional x.o:":      "want [OBJECT:]NAME",
		"loader-map x.o:":    "want [OBJECT:]NAME",
		"when x.o:=>=":       "no value",
		"one-of x.o:+,y.o:":  "want OBJECT:",
	} {
		option, value, _ := strings.Cut(value, " ")
		err := new(Policy).Add(option, value)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s %s: %v, want %q", option, value, err, want)
		}
	}
	p := policy(t, "when no.o:=>=5", "one-of x.o:,no.o:", "when x.o:=>=5")
	if got := p.Unmatched([]*rule.Object{rule.NewObject("dir/x.o", new(bpfobj.Code), nil)}); len(got) != 2 {
		t.Errorf("%v", got)
	}
}

// TestPropose has objects with what is proposed of them.
func TestPropose(t *testing.T) {
	for _, tt := range []struct{ objects, want, with string }{
		{"x.o ·····, y.o ·····", "", ""},
		{"x.o ···ff, x_v511.o fff··", "one-of x.o:,x_v511.o:", "·····"}, // only x.o works on 6.1
		{"x.o ··f·f, x_v61.o ff···", "one-of x.o:,x_v61.o:; when x.o:=<6.1; when x_v61.o:=>=6.1", "····u"},
		{"d/x_v612.o fff··, d/x_v53.o ··f·f, d/x_v61.o ff·f·", "one-of x_v53.o:,x_v61.o:,x_v612.o:; when x_v53.o:=>=5.3,<6.1; when x_v61.o:=>=6.1,<6.12; when x_v612.o:=>=6.12", "····u"},
		{"x-core.o f····, x-legacy.o ·ffff", "one-of x-core.o:,x-legacy.o:", "·····"},
		{"x.o f····, x.legacy.o ·ffff", "one-of x.o:,x.legacy.o:", "·····"},
		{"sched.o f····, sched_core.o ·ffff", "", ""},
		{"tcp.o f····, tcp_v4.o ·ffff, tcp_v6.o ·ffff", "", ""},
		{"x_v511.o ff···", "when x_v511.o:=>=5.11", "oo··u"},
		{"x_v511.o ·····", "", ""},
		{"a/x.o ·····, b/x.o ·····", "", ""},
	} {
		rep := several(t, Policy{}, tt.objects)
		got, with := "", ""
		for _, p := range rep.Proposals {
			var lines []string
			for _, o := range p.Options {
				lines = append(lines, o.Name+" "+o.Value)
			}
			got += strings.Join(lines, "; ")
			with = signs(p.Row.Status)
			pasted := several(t, policy(t, lines...), tt.objects)
			row := pasted.Whole()[0]
			if fmt.Sprint(row.Cells, row.Minima) != fmt.Sprint(p.Row.Cells, p.Row.Minima) {
				t.Errorf("%s: pasted: %v %v, want %v %v", tt.objects, row.Cells, row.Minima, p.Row.Cells, p.Row.Minima)
			}
			if len(pasted.Proposals) > 0 {
				t.Errorf("%s: pasted: proposes %v", tt.objects, pasted.Proposals[0].Options)
			}
		}
		if got != tt.want || tt.with != "" && with != tt.with {
			t.Errorf("%s: proposes %s (%s), want %s (%s)", tt.objects, got, with, tt.want, tt.with)
		}
	}
}

// TestUnloadedCells wants kernels on which an object is not loaded to be counted as such, and to end its releases.
func TestUnloadedCells(t *testing.T) {
	for _, tt := range []struct{ policy, want string }{
		{"when x.o:=>=5.10", "5.10 - 3 of 3, 1 not loaded"},
		{"when x.o:=<6.1", "5.4 5.10 2 of 2, 2 not loaded"},
		{"when x.o:=>=5.5,<6.12", "5.10 6.1 2 of 2, 2 not loaded"},
		{"when x.o:=<2", " - 0 of 0, 4 not loaded"},
	} {
		o := &several(t, policy(t, tt.policy, "when x.o:=id=zz"), "x.o ·····").Objects[0]
		var m Minimum
		if len(o.Minima) > 0 {
			m = o.Minima[0]
		}
		until := m.Until
		if until == "" {
			until = "-"
		}
		c := o.Sum() // includes the kernel without a release
		if got := fmt.Sprintf("%s %s %d of %d, %d not loaded", m.Since, until, c.Works-1, c.Judged()-1, c.Unloaded); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.policy, got, tt.want)
		}
	}
}
