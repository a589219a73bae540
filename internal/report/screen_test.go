// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
)

// TestFirstScreen has what a reader of public tools' reports misread or could not use.
func TestFirstScreen(t *testing.T) {
	kernels := []string{"a/1/x86_64/4.19.1", "a/1/x86_64/4.19.2", "a/1/x86_64/5.10.1", "a/1/arm64/6.1.1"}
	type object struct{ name, verdicts string }
	status := func(letters string) (s []rule.Status) {
		for _, l := range letters {
			s = append(s, map[rune]rule.Status{'.': rule.OK, 'X': rule.Fails, '?': rule.MayFail, '-': rule.Other}[l])
		}
		return s
	}
	of := func(objects ...object) *verdict.Report {
		r := new(verdict.Report)
		for _, k := range kernels {
			r.Kernels = append(r.Kernels, verdict.Column{Name: k})
		}
		for i, o := range objects {
			r.Programs = append(r.Programs, verdict.ProgramRow{Object: o.name, Name: "p", Status: status(o.verdicts)})
			r.Objects = append(r.Objects, verdict.ObjectRow{Object: o.name, Programs: []int{i}, Loader: rule.EbpfGo, Status: status(o.verdicts)})
		}
		return r
	}
	other := of(object{"a.o", "...."})
	other.Objects[0].Loaders = []verdict.LoaderRow{{Loader: rule.Libbpf, Status: status("XXXX")}}
	gains := of(object{"a.o", "XX.."}, object{"b.o", "XX.."}, object{"c.o", "XX.."})
	for i := range gains.Objects {
		o := &gains.Objects[i]
		o.Suggestion = &verdict.Suggestion{Options: []verdict.Option{{Name: "optional", Value: "p"}}, Row: verdict.ObjectRow{Status: status("....")}}
	}
	for _, tt := range []struct {
		name, was, want string
		r               *verdict.Report
	}{
		{"programs that fail on one kernel of several", "1 program: 1 fails\n", "1 program: 1 fails on some kernels\n", of(object{"a.o", "X..."})},
		{"the same of two", "2 programs: 1 fails, 1 ok", "2 programs: 1 fails on some kernels, 1 ok\n", of(object{"a.o", "X..."}, object{"b.o", "...."})},
		{"programs that fail everywhere", "", "1 program: 1 fails\n", of(object{"a.o", "XXXX"})},
		{"a headline without a verb", "1 on all that they are for", "2 objects on 4 kernels: 1 works on all that it is for, 1 fails on some\n", of(object{"a.o", "X..."}, object{"b.o", "...."})},
		{"none of 2 kernels", "0 of 2: certain to work on 0 of 2 kernels", "0 of 2: certain to work on 0 of 2 kernels, and fails or is uncertain on the others\n", of(object{"a.o", "X?.."})},
		{"rows that are for other machines", "\nb.o –", "\n    arm64\n    6.1\na.o ok\n", of(object{"a.o", "...."}, object{"b.o", "...-"})},
		{"another loader", "x86_64 4.19 to 5.10 fail", "With libbpf (--loader libbpf): a.o fails on every kernel\n", other},
		{"more suggestions", "and 1 such object:", "and 1 more such object: check --format suggest\n", gains},
	} {
		tt.r.Summarize()
		width := 0
		if strings.HasPrefix(tt.name, "rows") {
			width = 18
		}
		got := text(t, tt.r, Options{Width: width})
		if !strings.Contains(got, tt.want) || tt.was != "" && strings.Contains(got, tt.was+"\n") {
			t.Errorf("%s: no %q in\n%s", tt.name, tt.want, got)
		}
	}
}

// TestMapsAreAList names the type that several maps need once, and writes no empty parts in Markdown.
func TestMapsAreAList(t *testing.T) {
	r := fleet("a/1/x86_64/5.4.1 X")
	p := &r.Programs[0]
	p.Findings = nil
	for _, name := range []string{"events", "rb"} {
		p.Findings = append(p.Findings, verdict.KernelFinding{Finding: rule.Finding{Status: rule.Fails, Code: rule.MapTypeMissing, Subject: "BPF_MAP_TYPE_RINGBUF", Args: rule.Args{Name: name}}, Kernels: []int{0}})
	}
	p.Findings = append(p.Findings, verdict.KernelFinding{Finding: rule.Finding{Status: rule.Fails, Code: rule.RunningKernelNone}, Kernels: []int{0}})
	verdict.SortFindings(p.Findings)
	r.Summarize()
	if got, want := text(t, r, Options{}), ": maps events, rb need BPF_MAP_TYPE_RINGBUF (5.8) [map-type-missing]"; !strings.Contains(got, want) {
		t.Errorf("no %q in\n%s", want, got)
	}
	var b strings.Builder
	if err := Formats["markdown"](&b, r, Options{}); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"``", ":  "} {
		if strings.Contains(b.String(), bad) {
			t.Errorf("%q in\n%s", bad, &b)
		}
	}
}

// TestCausesOfEveryCell wants the first screen to say of each cell why it is not ok, before it has a second cause for one.
func TestCausesOfEveryCell(t *testing.T) {
	r := fleet("a/1/x86_64/4.19.1 X", "a/1/x86_64/6.1.1 ?", "a/1/x86_64/6.12.1 ·")
	p := &r.Programs[0]
	p.Findings = []verdict.KernelFinding{{Finding: rule.Finding{Status: rule.MayFail, Code: rule.AttachTargetUnlisted, Subject: "function f", Attach: true}, Kernels: []int{1}}}
	for i, c := range []rule.Code{rule.HelperMissing, rule.MapTypeMissing, rule.FeatureMissing, rule.KfuncMissing, rule.AttachTypeMissing, rule.AttachTargetMissing,
		rule.RunningKernelNone, rule.KsymMissing, rule.LinkTypeMissing} {
		p.Findings = append(p.Findings, verdict.KernelFinding{Finding: rule.Finding{Status: rule.Fails, Code: c, Subject: strings.Repeat("s", i+1)}, Kernels: []int{0}})
	}
	verdict.SortFindings(p.Findings)
	r.Summarize()
	got := text(t, r, Options{})
	for _, want := range []string{"x86_64 6.1: may fail to attach: function f: ", "\nand 2 other causes: -v\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// TestChangedCellsRuns writes neighbouring cells that change alike as one, as causes do.
func TestChangedCellsRuns(t *testing.T) {
	kernels := []string{"a/1/x86_64/4.19.1 X", "a/1/x86_64/5.10.1 ?", "a/1/x86_64/6.1.1 ?", "a/1/x86_64/6.12.1 ?", "a/1/arm64/6.1.1 ?", "a/1/arm64/6.12.1 ·"}
	r := fleet(kernels...)
	then := r.Objects[0]
	then.Cells = r.CellsOf([]rule.Status{rule.OK, rule.OK, rule.OK, rule.OK, rule.OK, rule.OK})
	if got, want := changedCells(r, &r.Objects[0], &then), "x86_64 4.19 fails → ok; 5.10 to 6.12 ? → ok; arm64 6.1 ? → ok"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
