// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
)

// TestHeadlineUncertain checks what headlines say of kernels on which an object may fail.
func TestHeadlineUncertain(t *testing.T) {
	loader := rule.Finding{Status: rule.Unknown, Code: rule.AttachTargetLoader}
	module := rule.Finding{Status: rule.MayFail, Code: rule.ModuleNeeded}
	symbol := rule.Finding{Status: rule.MayFail, Code: rule.AttachTargetUnlisted}
	for _, tt := range []struct {
		status   []rule.Status // by kernel
		findings []rule.Finding
		want     string
	}{
		{[]rule.Status{rule.OK, rule.Unknown, rule.Unknown}, []rule.Finding{loader}, "Linux 6.1 and later; 1 of 3 kernels; 2 are uncertain: attach target that no kernel has [attach-target-from-loader]."},
		{[]rule.Status{rule.OK, rule.OK, rule.Unknown}, []rule.Finding{loader}, "Linux 6.1 and later; 2 of 3 kernels; 1 is uncertain: attach target that no kernel has [attach-target-from-loader]."},
		{[]rule.Status{rule.MayFail, rule.MayFail, rule.MayFail}, []rule.Finding{module}, "None of 3 kernels for certain; all are uncertain: something that a module defines [module-needed]."},
		{[]rule.Status{rule.MayFail, rule.MayFail, rule.MayFail}, []rule.Finding{loader, symbol}, "The loader decides on 3 of 3 kernels: attach target that no kernel has [attach-target-from-loader] and function that BTF does not list [attach-target-unlisted]."},
		{[]rule.Status{rule.OK, rule.MayFail, rule.MayFail}, []rule.Finding{module, symbol}, "Linux 6.1 and later; 1 of 3 kernels; 2 are uncertain: function that BTF does not list [attach-target-unlisted] and something that a module defines [module-needed]."},
	} {
		rep := &verdict.Report{Programs: []verdict.ProgramRow{{}}}
		var d verdict.Decider
		for k, s := range tt.status {
			rep.Kernels = append(rep.Kernels, verdict.Column{Name: []string{"debian/12/x86_64/6.1.0-1", "debian/13/x86_64/6.12.1-1", "debian/14/x86_64/6.18.1-1"}[k]})
			if s != rule.OK {
				d.Kernels = append(d.Kernels, k)
			}
		}
		for _, f := range tt.findings {
			rep.Programs[0].Findings = append(rep.Programs[0].Findings, verdict.KernelFinding{Finding: f, Kernels: d.Kernels})
		}
		row := verdict.ObjectRow{Programs: []int{0}, Status: tt.status, Decides: []verdict.Decider{d}}
		row.Headline = verdict.Headline{Since: "6.1", Works: len(tt.status) - len(d.Kernels), MayFail: len(d.Kernels), Total: len(tt.status)}
		if got := Headline(rep, &row); got != tt.want {
			t.Errorf("%v: %s\nwant %s", tt.status, got, tt.want)
		}
	}
}

// TestHeadlineLoader wants the kernels on which the loader decides apart from others that are uncertain.
func TestHeadlineLoader(t *testing.T) {
	r := many(2)
	row := &r.Objects[1] // attaches to what its loader sets
	row.Headline = verdict.Headline{MayFail: 3, Total: 3}
	p := &r.Programs[1]
	p.Findings[0].Kernels = []int{1, 2}
	p.Findings = append(p.Findings, verdict.KernelFinding{Finding: rule.Finding{Status: rule.Unknown, Code: rule.AnalysisWhen}, Kernels: []int{0}})
	want := "The loader decides on 2 of 3 kernels: attach target that no kernel has [attach-target-from-loader]; " +
		"1 is uncertain: kernel of which --when does not say whether a program is loaded [analysis-when]."
	if got := Headline(r, row); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// TestNowhere wants a placeholder to be known as such if some kernels cannot show it.
func TestNowhere(t *testing.T) {
	for _, tt := range []struct {
		code rule.Code
		want bool
	}{{rule.AnalysisWhen, true}, {rule.AttachTargetNoFunctions, true}, {rule.HelperSetting, false}} {
		r := many(1)
		r.Kernels = append(r.Kernels, verdict.Column{Name: "debian/14/x86_64/6.18.1-amd64"})
		row, p := &r.Objects[0], &r.Programs[0]
		unlisted := rule.Finding{Status: rule.MayFail, Code: rule.AttachTargetUnlisted, Subject: "function place", Attach: true}
		p.Findings = []verdict.KernelFinding{{Finding: unlisted, Kernels: []int{0, 1, 2}}, {Finding: rule.Finding{Status: rule.Unknown, Code: tt.code}, Kernels: []int{3}}}
		row.Status = []rule.Status{rule.MayFail, rule.MayFail, rule.MayFail, rule.Unknown}
		if got := nowhere(r, row, &unlisted); got != tt.want {
			t.Errorf("%s: %v", tt.code, got)
		}
		var b strings.Builder
		if err := Suggestions(&b, r, Options{}); err != nil || strings.Contains(b.String(), `"p=NAME"`) != tt.want {
			t.Errorf("%s: %v\n%s", tt.code, err, &b)
		}
	}
}

// TestHeadlineAside wants a headline of an object that one loader alone opens to be a sentence, and a remark that says how to see why.
func TestHeadlineAside(t *testing.T) {
	r := many(1)
	row := &r.Objects[0]
	fails := []rule.Status{rule.Fails, rule.Fails, rule.Fails}
	row.Status, row.Load = make([]rule.Status, 3), make([]rule.Status, 3)
	row.Loaders = []verdict.LoaderRow{{Loader: rule.Libbpf, Status: fails, Load: fails}, {Loader: rule.EbpfGo, Status: row.Status, Load: row.Load}}
	row.Headline = verdict.Headline{Since: "5.10", Works: 3, Total: 3}
	want := "Linux 5.10 and later; none of 3 kernels with libbpf and 3 with ebpf-go."
	if got := Headline(r, row); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	want = "libbpf alone: fails on all 3 kernels (--loader libbpf says why)"
	if got := newView(r).remarks(row, false); len(got) != 1 || got[0] != want {
		t.Errorf("%q\nwant %q", got, want)
	}
}
