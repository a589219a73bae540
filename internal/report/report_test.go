// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/report/codes"
	"github.com/btfgen/btfgen/pkg/relo"
)

// sample has two distributions whose kernels are not in the order of releases,
// one kernel that is only a path, and a program for each verdict.
func sample() *verdict.Report {
	r := &verdict.Report{Version: verdict.ReportVersion}
	for _, n := range []string{"debian/11/x86_64/5.10.0-30-amd64", "debian/13/x86_64/6.12.107+deb13-amd64", "debian/12/x86_64/6.1.0-47-amd64", "debian/12/arm64/6.1.0-50-arm64", "some/vmlinux"} {
		r.Kernels = append(r.Kernels, verdict.Column{Name: n})
	}
	core := func(s rule.Status, kind string, kernels ...int) verdict.KernelFinding {
		f := rule.Finding{Status: s, Code: relo.FieldMissing, Relocation: kind, Subject: "struct s.f", Source: "./x.bpf.c:12"}
		if s == rule.Guarded {
			f.Guard = rule.Guard{By: rule.Fact, Name: "field_exists struct s.f"}
		}
		return verdict.KernelFinding{Finding: f, Kernels: kernels}
	}
	other := core(rule.Fails, "byte_off", 1, 2)
	other.Subject, other.Source = "struct s.g|h", "./x.bpf.c:9"
	r.Programs = []verdict.ProgramRow{
		{Object: "a.o", Name: "broken", Section: "kprobe/x", Status: []rule.Status{0, rule.Fails, rule.Fails, 0, 0}, Load: []rule.Status{0, rule.Fails, rule.Fails, 0, 0},
			Findings: []verdict.KernelFinding{core(rule.Fails, "byte_off", 1, 2), core(rule.Fails, "byte_sz", 1, 2), other}},
		{Object: "a.o", Name: "guard", Section: "kprobe/x", Status: []rule.Status{0, rule.Guarded, rule.Guarded, 0, 0}, Findings: []verdict.KernelFinding{core(rule.Guarded, "byte_off", 1, 2)}},
		{Object: "b.o", Name: "<fine>", Section: "xdp", Status: make([]rule.Status, 5)},
		{Object: "b.o", Name: "perhaps", Section: "kprobe/y", Status: []rule.Status{rule.MayFail, rule.MayFail, rule.MayFail, rule.MayFail, rule.Unknown}, Load: []rule.Status{0, 0, 0, 0, rule.Unknown}, Findings: []verdict.KernelFinding{
			{Finding: rule.Finding{Status: rule.MayFail, Code: rule.AttachTargetUnlisted, Subject: "function y", Attach: true}, Kernels: []int{0, 1, 2, 3}},
			{Finding: rule.Finding{Status: rule.Unknown, Code: rule.AttachTargetNoFunctions, Subject: "function y"}, Kernels: []int{4}},
		}},
	}
	r.Objects = []verdict.ObjectRow{
		{Object: "a.o", Programs: []int{0, 1}, Status: []rule.Status{0, rule.Fails, rule.Fails, 0, 0}, Load: []rule.Status{0, rule.Fails, rule.Fails, 0, 0},
			Loaders: []verdict.LoaderRow{
				{Loader: rule.Libbpf, Status: []rule.Status{0, rule.Fails, rule.Fails, 0, 0}, Load: []rule.Status{0, rule.Fails, rule.Fails, 0, 0}},
				{Loader: rule.EbpfGo, Status: []rule.Status{0, 0, rule.Fails, 0, 0}, Load: []rule.Status{0, 0, rule.Fails, 0, 0}},
			},
			Decides: []verdict.Decider{{Program: 0, Kernels: []int{1, 2}}}},
		{Object: "b.o", Programs: []int{2, 3}, Status: []rule.Status{0, 0, 0, 0, 0}, Load: []rule.Status{0, 0, 0, 0, 0},
			Rules: []verdict.Rule{{Kind: verdict.Optional, Programs: [][]int{{3}}, Guess: verdict.Marked}}},
	}
	r.Summarize()
	return r
}

func TestText(t *testing.T) {
	for _, tt := range []struct {
		verbose bool
		want    string
	}{
		{false, `2 objects on 5 kernels: 1 works on all that it is for, 1 fails on some
4 programs: 1 fails on some kernels, 1 may fail, 1 guarded, 1 ok

    x86_64             arm64   unknown
    5.10 6.1   6.12    6.1     some/vmlinux
a.o ok   fails fails   ok      ok
b.o ok   ok    ok      ok      ok

a.o, x86_64 6.1, 6.12: struct s.f, .g|h: field absent (program broken, x.bpf.c:12 and 1 other line) [field-missing]
   Check first, as with bpf_core_field_exists(), or use a flavor that matches the kernel's type.
With ebpf-go (--loader ebpf-go): a.o x86_64 6.12 ok
Details: -v, or --format html -o report.html
`},
		{true, `2 objects on 5 kernels: 1 works on all that it is for, 1 fails on some
4 programs: 1 fails on some kernels, 1 may fail, 1 guarded, 1 ok

          x86_64             arm64   unknown
          5.10 6.1   6.12    6.1     some/vmlinux
a.o       ok   fails fails   ok      ok
  guard   ok   ok    ok      ok      ok
b.o       ok   ok    ok      ok      ok
  perhaps ?    ?     ?       ?       ?
? uncertain

a.o, x86_64 6.1, 6.12: struct s.f, .g|h: field absent (program broken, x.bpf.c:12 and 1 other line) [field-missing]
   a.o: broken
   ./x.bpf.c:9, 12
   Check first, as with bpf_core_field_exists(), or use a flavor that matches the kernel's type.
b.o, all x86_64; arm64 6.1: may fail to attach: function y: not in the kernel's BTF, which does not list every function (program perhaps) [attach-target-unlisted]
   b.o: perhaps
   Attach these to something else or leave them out on such kernels. If the loader sets the target, name it with --target; if only tail calls reach the program, see --tail-called.
b.o, some/vmlinux: unknown: function y: the kernel's BTF has no functions at all (program perhaps) [attach-target-functions]
   b.o: perhaps
a.o, x86_64 6.1, 6.12: guarded: struct s.f: field absent (program guard, x.bpf.c:12) [field-missing]
   a.o: guard
   ./x.bpf.c:12
   guarded by field_exists struct s.f = 0
With ebpf-go: a.o x86_64 6.12 ok
b.o: works without perhaps (a guess: marked with a ? in SEC)
`},
	} {
		var b bytes.Buffer
		if err := Text(&b, sample(), Options{Verbose: tt.verbose}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, b.String()); diff != "" {
			t.Errorf("-v %v, - want, + got:\n%s", tt.verbose, diff)
		}
	}
}

// TestGroups has causes that are one to a reader.
func TestGroups(t *testing.T) {
	cause := func(code rule.Code, subject string, kernels ...int) verdict.KernelFinding {
		f := rule.Finding{Status: rule.Fails, Code: code, Subject: subject}
		if kind, what, ok := strings.Cut(subject, " "); ok && rule.FamilyOf(code) == rule.FamilyCORE {
			f.Relocation, f.Subject = kind, what
		}
		return verdict.KernelFinding{Finding: f, Kernels: kernels}
	}
	lucky, modular := cause(relo.EnumeratorMissing, "enumval_value enum e::A", 0), cause(rule.ModuleNeeded, "function f", 0)
	lucky.Reach, modular.Names = rule.TooManyPaths, "m"
	other, alone := cause(rule.HelperMissing, "bpf_a", 0, 1), cause(rule.HelperMissing, "bpf_a", 0, 1)
	other.Status, other.Reach = rule.MayFail, rule.TooManyPaths // another call, which on kernel 0 changes nothing
	alone.Status, alone.Doubt, alone.Loader = rule.Unknown, rule.NoRelease, rule.EbpfGo
	r := &verdict.Report{Programs: []verdict.ProgramRow{{Object: "o", Name: "p", Findings: []verdict.KernelFinding{
		cause(relo.FieldMissing, "byte_off struct bits.a", 0, 1),
		cause(relo.FieldMissing, "lshift_u64 struct bits.a", 0, 1),
		cause(relo.FieldMissing, "byte_off struct bits.b", 0, 1),
		cause(relo.FieldMissing, "byte_off struct bits.c.d", 0, 1),
		cause(relo.FieldMissing, "byte_off struct bits.e", 0, 1),
		cause(relo.FieldMissing, "byte_off struct bits.z", 0), // on other kernels
		cause(relo.NoCandidate, "byte_off struct gone.a", 0),
		cause(relo.NoCandidate, "byte_sz struct gone[2].b", 0),
		cause(relo.NoCandidate, "type_size struct lost", 0),
		lucky,
		cause(relo.AmbiguousValue, "target_type_id struct two", 0, 1),
		modular,
		cause(rule.HelperMissing, "bpf_a", 0),
		cause(rule.HelperMissing, "bpf_b", 0),
		other,
		alone,
	}}}, Kernels: []verdict.Column{{Name: "debian/11/x86_64/5.10.0-1"}, {Name: "debian/12/x86_64/6.1.0-1"}}, Objects: []verdict.ObjectRow{{Object: "o", Programs: []int{0},
		Status: []rule.Status{rule.Fails, rule.Fails}, Decides: []verdict.Decider{{Kernels: []int{0, 1}}}}}}
	r.Summarize()
	var got []string
	for i := range r.Causes {
		got = append(got, fmt.Sprint(len(r.Causes[i].Kernels), " ", CauseText(&r.Causes[i], 3)))
	}
	want := []string{
		"2 struct two: ambiguous: several types of this name give different values [ambiguous-value]",
		"2 struct bits.a … .e (4): field absent [field-missing]",
		"1 enum e::A: enumerator absent; whether it is reached is not known, as too many paths lead there [enumerator-missing]",
		"1 struct bits.z: field absent [field-missing]",
		"1 helper bpf_a, bpf_b: the kernel has no such helper [helper-missing]",
		"1 function f: needs module m to be loaded [module-needed]",
		"1 struct gone, lost: type absent [no-candidate]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("- want, + got:\n%s", diff)
	}
}

func TestMarkdown(t *testing.T) {
	var b bytes.Buffer
	if err := Markdown(&b, sample(), Options{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| | x86\\_64 5.10 | 6.1 | 6.12 | arm64 6.1 | unknown some/vmlinux |\n|---|:-:|:-:|:-:|:-:|:-:|\n| a.o | ✅ | ❌ | ❌ | ✅ | ✅ |\n| b.o | ✅ | ✅ | ✅ | ✅ | ✅ |\n",
		"\n- With ebpf-go (--loader ebpf-go): a.o x86\\_64 6.12 ok\n",
		"| ❌ fails | `struct s.f, .g\\x7ch`: field absent `[field-missing]` (./x.bpf.c:9, 12) | x86\\_64 6.1, 6.12 | a.o: broken |\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// TestChanges has what got worse and better since a baseline.
func TestChanges(t *testing.T) {
	old := sample()
	old.Programs[0].Status = []rule.Status{0, 0, 0, 0, 0}
	old.Objects[0].Status = old.Programs[0].Status
	old.Programs[1].Status = []rule.Status{0, 0, 0, 0, 0} // guarded is as good as ok
	old.Programs[3].Status = []rule.Status{rule.Fails, rule.MayFail, rule.MayFail, rule.MayFail, rule.Unknown}
	for _, tt := range []struct {
		old  *verdict.Report
		want string
	}{
		{old, `
#### Worse than the baseline

| program | was | is | where |
|---|---|---|---|
| a.o | ✅ ok | ❌ fails | x86\_64 6.1, 6.12 |
| a.o: broken | ✅ ok | ❌ fails | x86\_64 6.1, 6.12 |

#### Better than the baseline

| program | was | is | where |
|---|---|---|---|
| b.o: perhaps | ❌ fails | ⚠️ may fail | x86\_64 5.10 |
`},
		{sample(), "\nNothing is worse or better than the baseline.\n"},
	} {
		var b bytes.Buffer
		if err := JSON(&b, tt.old, Options{}); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "old.json")
		if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		baseline, err := verdict.ReadBaseline(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		b.Reset()
		if err := Markdown(&b, sample(), Options{Baseline: baseline}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), tt.want) {
			t.Errorf("no %s in\n%s", tt.want, b.String())
		}
	}
}

// TestJSON reads what was written.
func TestJSON(t *testing.T) {
	var b bytes.Buffer
	want := sample()
	if err := JSON(&b, want, Options{Findings: nil}); err != nil {
		t.Fatal(err)
	}
	written := b.Bytes()
	var got struct {
		Lines   []verdict.Line
		Objects []struct {
			Cells  []verdict.Cell
			Minima []verdict.Minimum
		}
		Causes []struct {
			Code    rule.Code
			Objects []int
			Where   []verdict.Place
			Message string
		}
		Programs []struct {
			Status   []rule.Status
			Findings []struct {
				Code    rule.Code
				Subject string
				Message string
				Kernels []int
			}
		}
	}
	if err := json.Unmarshal(written, &got); err != nil {
		t.Fatal(err)
	}
	if names := fmt.Sprint(got.Lines); names != "[{x86_64 5.10 [0] 0} {x86_64 6.1 [2] 0} {x86_64 6.12 [1] 0} {arm64 6.1 [3] 0} {unknown some/vmlinux [4] 0}]" {
		t.Error(names)
	}
	if cells := fmt.Sprint(got.Objects[0].Cells); cells != "[{1 0 0 0} {0 1 0 0} {0 1 0 0} {1 0 0 0} {1 0 0 0}]" {
		t.Error(cells)
	}
	if minima := got.Objects[0].Minima; len(minima) != 2 || minima[0].Since != "5.10" || minima[0].Until != "5.10" || !minima[0].Oldest || minima[1].Since != "6.1" {
		t.Errorf("%+v", minima)
	}
	if c := got.Causes; len(c) != 1 || c[0].Code != relo.FieldMissing || fmt.Sprint(c[0].Objects, c[0].Where) != "[0] [{1 1 1} {2 1 1}]" ||
		c[0].Message != "struct s.f, .g|h: field absent [field-missing]" {
		t.Errorf("%+v", c)
	}
	for i, p := range want.Programs {
		if !slices.Equal(got.Programs[i].Status, p.Status) || len(got.Programs[i].Findings) != len(p.Findings) {
			t.Fatalf("%+v, want %+v", got.Programs[i], p)
		}
		for j, f := range p.Findings {
			g := got.Programs[i].Findings[j]
			if g.Code != f.Code || g.Subject != f.Subject || !slices.Equal(g.Kernels, f.Kernels) || !strings.HasSuffix(g.Message, " ["+string(f.Code)+"]") {
				t.Errorf("%+v, want %+v", g, f)
			}
		}
	}
	path := filepath.Join(t.TempDir(), "old.json")
	baseline := func(data []byte) (*verdict.Baseline, error) {
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		return verdict.ReadBaseline(t.Context(), path)
	}
	old, err := baseline(written)
	if err != nil {
		t.Fatal(err)
	}
	if changes := want.Compare(old); len(changes) != 0 {
		t.Errorf("compared with itself: %v", changes)
	}
	want.Programs[0].Status[1] = rule.OK
	want.Programs[3].Status[0] = rule.Fails
	changes := want.Compare(old)
	if len(changes) != 2 || changes[0].Worse() || !changes[1].Worse() {
		t.Errorf("%v", changes)
	}
	for _, bad := range []string{
		`{"version":1,"programs":[{"object":"o","status":["good"]}]}`, `{"version":1,"programs":[{"program":"p"}]}`,
		`{"version":1,"kernels":[{}]}`, `{"version":1,"kernels":{}}`,
		`{}`, `[]`, ``, `{"version":1`, `{"version":1} {}`,
	} {
		if _, err := baseline([]byte(bad)); err == nil || !strings.HasPrefix(err.Error(), path+": not a report of check --json: ") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestJUnit(t *testing.T) {
	r := sample()
	r.Programs[3].Status[0], r.Programs[3].Findings[0].Status = rule.Fails, rule.Fails // where its object works
	var b bytes.Buffer
	if err := JUnit(&b, r, Options{}); err != nil {
		t.Fatal(err)
	}
	var s suites
	if err := xml.Unmarshal(b.Bytes(), &s); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range s.Suites[1].Cases {
		line := c.Class + " " + c.Name
		if c.Failure != nil {
			line += fmt.Sprintf(" failed (%s) %s | %s", c.Failure.Type, c.Failure.Message, c.Failure.Text)
		}
		if c.Skipped != nil {
			line += fmt.Sprintf(" skipped %s", c.Skipped.Message)
		}
		got = append(got, line)
	}
	want := []string{
		"a.o object failed (field-missing) broken: fails: struct s.f: field absent (./x.bpf.c:12) [field-missing] | " +
			"broken:\nfails: struct s.f: field absent (./x.bpf.c:12) [field-missing]\nfails: struct s.g|h: field absent (./x.bpf.c:9) [field-missing]\n",
		"b.o object",
		"a.o broken failed (field-missing) fails: struct s.f: field absent (./x.bpf.c:12) [field-missing] | " +
			"fails: struct s.f: field absent (./x.bpf.c:12) [field-missing]\nfails: struct s.g|h: field absent (./x.bpf.c:9) [field-missing]\n",
		"a.o guard",
		"b.o <fine>",
		"b.o perhaps skipped fails to attach: function y: not in the kernel's BTF, which does not list every function [attach-target-unlisted]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("- want, + got:\n%s", diff)
	}
	if s.Tests != 30 || s.Failures != 4 || s.Suites[1].Failures != 2 || s.Suites[1].Skipped != 1 || s.Suites[0].Failures != 0 {
		t.Errorf("%+v", s)
	}
}

func TestSARIF(t *testing.T) {
	r := sample()
	r.Objects = whole(&verdict.Report{Kernels: r.Kernels, Programs: r.Programs}).Objects // all causes count
	for _, at := range []string{"/src/my tool/x[1].c:7", "/src/my tool/../other.c:8"} {
		f := r.Programs[0].Findings[0]
		f.Source = at
		r.Programs[0].Findings = append(r.Programs[0].Findings, f)
	}
	r.Summarize()
	var b bytes.Buffer
	if err := SARIF(&b, r, Options{SourceRoot: "/src/my tool", Version: "v1.2.3"}); err != nil {
		t.Fatal(err)
	}
	var l sarifLog
	if err := json.Unmarshal(b.Bytes(), &l); err != nil {
		t.Fatal(err)
	}
	var got []string
	show := func(l sarifLocation) string { return fmt.Sprint(l.Physical.Artifact.URI, " ", l.Physical.Region.Line) }
	for _, r := range l.Runs[0].Results {
		if len(r.Locations) != 1 || l.Runs[0].Tool.Driver.Rules[r.Index].ID != r.Rule {
			t.Errorf("%+v", r)
		}
		line := r.Level + " " + r.Rule + " " + show(r.Locations[0])
		for _, rel := range r.Related {
			line += fmt.Sprintf(" (%d: %s)", rel.ID, show(rel))
		}
		got = append(got, line+" "+r.Message.Text)
	}
	want := []string{
		"error field-missing x.bpf.c 9 (1: x.bpf.c 12) (2: file:///src/other.c 8) (3: x%5B1%5D.c 7) " +
			"struct s.f, .g|h: field absent. On x86_64 6.1, 6.12. Programs: a.o: broken. " +
			codes.Of(relo.FieldMissing).Fix + " Also at [x.bpf.c:12](1), [other.c:8](2), [x\\[1\\].c:7](3).",
		"warning attach-target-unlisted b.o 1 may fail to attach: function y: not in the kernel's BTF, which does not list every function. " +
			"On all x86_64; arm64 6.1. Programs: b.o: perhaps. " + codes.Of(rule.AttachTargetUnlisted).Fix,
		"note attach-target-functions b.o 1 unknown: function y: the kernel's BTF has no functions at all. On some/vmlinux. Programs: b.o: perhaps. " + codes.Of(rule.AttachTargetUnlisted).Fix,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("- want, + got:\n%s", diff)
	}
}

// TestHTML holds the page to its limits and its data to the report.
func TestHTML(t *testing.T) {
	r := &verdict.Report{Version: verdict.ReportVersion}
	for i := range 1000 {
		r.Kernels = append(r.Kernels, verdict.Column{Name: fmt.Sprintf("debian/%d/x86_64/5.%d.0-%d-amd64", i%10, i/10, i)})
	}
	for p := range 50 {
		pr := verdict.ProgramRow{Object: "x.o", Name: fmt.Sprintf("</script>%d", p), Section: "kprobe/f"}
		var odd []int
		for k := range r.Kernels {
			s := rule.OK
			if (k+p)%2 == 1 { // the worst case for ranges
				s, odd = rule.Fails, append(odd, k)
			}
			pr.Status = append(pr.Status, s)
		}
		for f := range 5 {
			pr.Findings = append(pr.Findings, verdict.KernelFinding{Finding: rule.Finding{Status: rule.Fails, Subject: fmt.Sprint(f), Code: relo.FieldMissing}, Kernels: odd})
		}
		r.Programs = append(r.Programs, pr)
	}
	var b bytes.Buffer
	if err := HTML(&b, whole(r), Options{}); err != nil {
		t.Fatal(err)
	}
	if b.Len() > 3e6 {
		t.Errorf("%d bytes, more than 3 MB", b.Len())
	}
	_, rest, ok := strings.Cut(b.String(), "const D = ")
	js, _, ok2 := strings.Cut(rest, ";\n")
	var d pageData
	if err := json.Unmarshal([]byte(js), &d); err != nil || !ok || !ok2 {
		t.Fatalf("no data in the page: %v", err)
	}
	if n := strings.Count(b.String(), "</script>"); n != 1 {
		t.Errorf("%d ends of the script, want 1", n)
	}
	if len(d.Programs) != 50 || len(d.Programs[0].Cells) != 1000 || len(d.Cells) != int(numCell) {
		t.Errorf("%d programs", len(d.Programs))
	}
	for _, bad := range []string{"http:", "https:", "src=", "@import"} {
		if strings.Contains(b.String(), bad) {
			t.Errorf("the page has %q and is not self-contained", bad)
		}
	}
}

func TestRanges(t *testing.T) {
	column := []int{3, 2, 1, 0, 4}
	if got := ranges([]int{0, 1, 2, 4}, column); got != "1+3" {
		t.Error(got)
	}
	if got := ranges([]int{0, 3}, column); got != "0,2" {
		t.Error(got)
	}
	if got := order(sample()).ordered; !slices.Equal(got, []int{0, 2, 1, 4, 3}) {
		t.Error(got)
	}
}

// TestJUnitLoader wants no reasons of a loader whose verdicts do not count.
func TestJUnitLoader(t *testing.T) {
	f := func(l rule.Loader, subject string) verdict.KernelFinding {
		return verdict.KernelFinding{Finding: rule.Finding{Status: rule.Fails, Code: rule.HelperMissing, Subject: subject, Loader: l}, Kernels: []int{0}}
	}
	status := []rule.Status{rule.Fails}
	r := &verdict.Report{Kernels: []verdict.Column{{Name: "debian/12/x86_64/6.1.0-1"}},
		Programs: []verdict.ProgramRow{{Object: "o", Name: "p", Status: status, Findings: []verdict.KernelFinding{f(rule.EbpfGo, "bpf_a"), f(rule.Libbpf, "bpf_b")}}},
		Objects:  []verdict.ObjectRow{{Object: "o", Programs: []int{0}, Loader: rule.Libbpf, Status: status, Decides: []verdict.Decider{{Kernels: []int{0}}}}}}
	r.Summarize()
	var b strings.Builder
	if err := JUnit(&b, r, Options{}); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); strings.Contains(got, "bpf_a") || !strings.Contains(got, "fails with libbpf: helper bpf_b") {
		t.Error(got)
	}
	if len(r.Causes) != 1 || r.Causes[0].Loader != rule.Libbpf {
		t.Errorf("%+v", r.Causes)
	}
}
