// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/check"
)

// sample has two distributions whose kernels are not in the order of releases,
// one kernel that is only a path, and a program for each verdict.
func sample() *check.Report {
	r := &check.Report{Version: check.ReportVersion}
	for _, n := range []string{"debian/11/x86_64/5.10.0-30-amd64", "debian/13/x86_64/6.12.107+deb13-amd64", "debian/12/x86_64/6.1.0-47-amd64", "debian/12/arm64/6.1.0-50-arm64", "some/vmlinux"} {
		r.Kernels = append(r.Kernels, check.Kernel{Name: n})
	}
	core := func(s check.Status, kernels ...int) check.KernelFinding {
		f := check.Finding{Status: s, Topic: check.TopicCORE, Subject: "byte_off struct s.f", Reason: "no | candidate", Source: "./x.bpf.c:12"}
		if s == check.Guarded {
			f.Guard = "field_exists struct s.f = 0"
		}
		return check.KernelFinding{Finding: f, Kernels: kernels}
	}
	r.Programs = []check.Program{
		{Object: "a.o", Name: "broken", Section: "kprobe/x", Status: []check.Status{0, 5, 5, 0, 0}, Findings: []check.KernelFinding{core(check.Fails, 1, 2)}},
		{Object: "a.o", Name: "guard", Section: "kprobe/x", Status: []check.Status{0, 1, 1, 0, 0}, Findings: []check.KernelFinding{core(check.Guarded, 1, 2)}},
		{Object: "b.o", Name: "<fine>", Section: "xdp", Status: make([]check.Status, 5)},
		{Object: "b.o", Name: "perhaps", Section: "kprobe/y", Status: []check.Status{4, 4, 4, 4, 3}, Findings: []check.KernelFinding{
			{Finding: check.Finding{Status: check.MayFail, Topic: check.TopicTarget, Subject: "function y", Reason: "not there"}, Kernels: []int{0, 1, 2, 3}},
			{Finding: check.Finding{Status: check.Unknown, Topic: check.TopicTarget, Subject: "function y", Reason: "no functions"}, Kernels: []int{4}},
		}},
	}
	return r
}

func TestText(t *testing.T) {
	var b bytes.Buffer
	if err := Text(&b, sample(), Options{Verbose: true}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"4 programs of 2 objects on 5 kernels: 1 fails, 1 may fail, 1 guarded, 1 ok\n",
		"    4  debian x86_64 6.1.0-47-amd64 … 6.12.107+deb13-amd64 (2)\n",
		"  broken (kprobe/x)  ···X\n",
		"  guard (kprobe/x)   ···g\n",
		"  perhaps (kprobe/y) u???\n",
		"1 program ok on every kernel\n",
		"  may fail: attach to function y: not there\n    4 kernels: debian arm64 6.1.0-50-arm64; debian x86_64 5.10.0-30-amd64 … 6.12.107+deb13-amd64 (3)\n",
		"  fails: relocation byte_off struct s.f: no | candidate\n    2 kernels: debian x86_64 6.1.0-47-amd64 … 6.12.107+deb13-amd64 (2)\n    a.o: broken\n    ./x.bpf.c:12\n",
		"    guarded by field_exists struct s.f = 0\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestMarkdown(t *testing.T) {
	var b bytes.Buffer
	if err := Markdown(&b, sample(), Options{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| 2 | ❌ fails | relocation `byte_off struct s.f`: no \\| candidate (./x.bpf.c:12) | 2 kernels: debian x86\\_64 6.1.0-47-amd64 … 6.12.107+deb13-amd64 (2) | a.o: broken |\n",
		"| a.o: guard |",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// TestJSON reads what was written.
func TestJSON(t *testing.T) {
	var b bytes.Buffer
	want := sample()
	if err := JSON(&b, want, nil); err != nil {
		t.Fatal(err)
	}
	written := b.Bytes()
	got := new(check.Report)
	if err := json.Unmarshal(written, got); err != nil {
		t.Fatal(err)
	}
	for i := range want.Kernels {
		want.Kernels[i] = check.Kernel{Name: want.Kernels[i].Name}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\n%+v", got, want)
	}
	path := filepath.Join(t.TempDir(), "old.json")
	baseline := func(data []byte) (*check.Baseline, error) {
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		return check.ReadBaseline(t.Context(), path)
	}
	old, err := baseline(written)
	if err != nil {
		t.Fatal(err)
	}
	if changes := want.Compare(old); len(changes) != 0 {
		t.Errorf("compared with itself: %v", changes)
	}
	want.Programs[0].Status[1] = check.OK
	want.Programs[3].Status[0] = check.Fails
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

func TestJUnitAndSARIF(t *testing.T) {
	var b bytes.Buffer
	if err := JUnit(&b, sample()); err != nil {
		t.Fatal(err)
	}
	var s suites
	if err := xml.Unmarshal(b.Bytes(), &s); err != nil {
		t.Fatal(err)
	}
	if len(s.Suites) != 5 || s.Suites[1].Failures != 1 || s.Suites[1].Skipped != 1 || s.Suites[1].Tests != 4 {
		t.Errorf("%+v", s.Suites)
	}
	b.Reset()
	if err := SARIF(&b, sample()); err != nil {
		t.Fatal(err)
	}
	var l sarifLog
	if err := json.Unmarshal(b.Bytes(), &l); err != nil {
		t.Fatal(err)
	}
	known := make(map[string]bool)
	for _, r := range l.Runs[0].Tool.Driver.Rules {
		known[r.ID] = true
	}
	lines := 0
	for _, r := range l.Runs[0].Results {
		if !known[r.Rule] || r.Message.Text == "" || len(r.Locations) == 0 {
			t.Errorf("%+v", r)
		}
		if p := r.Locations[0].Physical; p.Region != nil && p.Region.Line == 12 && p.Artifact.URI == "x.bpf.c" {
			lines++
		}
	}
	if lines != 1 {
		t.Errorf("%d results with a line, want 1", lines)
	}
}

// TestHTML holds the page to its limits and its data to the report.
func TestHTML(t *testing.T) {
	r := &check.Report{Version: check.ReportVersion}
	for i := range 1000 {
		r.Kernels = append(r.Kernels, check.Kernel{Name: fmt.Sprintf("debian/%d/x86_64/5.%d.0-%d-amd64", i%10, i/10, i)})
	}
	for p := range 50 {
		pr := check.Program{Object: "x.o", Name: fmt.Sprintf("</script>%d", p), Section: "kprobe/f"}
		var odd []int
		for k := range r.Kernels {
			s := check.OK
			if (k+p)%2 == 1 { // the worst case for ranges
				s, odd = check.Fails, append(odd, k)
			}
			pr.Status = append(pr.Status, s)
		}
		for f := range 5 {
			pr.Findings = append(pr.Findings, check.KernelFinding{Finding: check.Finding{Status: check.Fails, Subject: fmt.Sprint(f), Topic: check.TopicCORE}, Kernels: odd})
		}
		r.Programs = append(r.Programs, pr)
	}
	var b bytes.Buffer
	if err := HTML(&b, r); err != nil {
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
	if len(d.Programs) != 50 || len(d.Programs[0].Status) != 1000 || len(d.Status) != int(check.Fails)+1 {
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
	if got := ranges([]int{0, 1, 2, 4}, column); got != "1-4" {
		t.Error(got)
	}
	if got := ranges([]int{0, 3}, column); got != "0,3" {
		t.Error(got)
	}
	if got := order(sample()); !slices.Equal(got, []int{4, 3, 0, 2, 1}) {
		t.Error(got)
	}
}
