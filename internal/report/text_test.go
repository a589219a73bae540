// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/pkg/relo"
)

// many is a report of so many objects with a program each. All but the first five lack one of several fields on the older two kernels; the
// first needs a map that 6.1 does not have; the second to fifth attach to what their loader sets.
func many(objects int) *verdict.Report {
	r := &verdict.Report{Kernels: []verdict.Column{{Name: "debian/11/x86_64/5.10.0-1-amd64"}, {Name: "debian/12/x86_64/6.1.0-1-amd64"}, {Name: "debian/13/x86_64/6.12.1-amd64"}}}
	for i := range objects {
		o := verdict.ObjectRow{Object: fmt.Sprintf("o%03d.o", i), Programs: []int{i}}
		f := rule.Finding{Status: rule.Fails, Code: relo.FieldMissing, Subject: fmt.Sprintf("struct s%d.f", i%9), Source: "x.bpf.c:7"}
		kernels := []int{0}
		switch {
		case i == 0:
			f = rule.Finding{Status: rule.Fails, Code: rule.MapTypeMissing, Subject: "BPF_MAP_TYPE_ARENA", Args: rule.Args{Name: "arena_buf"}}
			kernels = []int{0, 1}
		case i < 5:
			f = rule.Finding{Status: rule.Unknown, Code: rule.AttachTargetLoader, Subject: "fentry/place"}
			kernels = []int{0, 1, 2}
		}
		status := make([]rule.Status, len(r.Kernels))
		for _, k := range kernels {
			status[k] = f.Status
		}
		o.Status, o.Load = status, status
		o.Decides = []verdict.Decider{{Program: i, Kernels: kernels}}
		r.Programs = append(r.Programs, verdict.ProgramRow{Object: o.Object, Name: "p", Section: "kprobe/x", Status: status, Load: status,
			Findings: []verdict.KernelFinding{{Finding: f, Kernels: kernels}}})
		r.Objects = append(r.Objects, o)
	}
	r.Summarize()
	return r
}

func text(t *testing.T, r *verdict.Report, o Options) string {
	t.Helper()
	var b strings.Builder
	if err := Text(&b, r, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestNarrow wants a matrix of long names that fits a narrow terminal, and in which the names still differ.
func TestNarrow(t *testing.T) {
	r := many(6)
	for i := range r.Objects {
		name := fmt.Sprintf("/usr/lib/x86_64-linux-gnu/tools/libexec/tracer-%d-with-a-long-name!skeleton_of_the_object_%d", i%3, i)
		r.Objects[i].Object, r.Programs[i].Object = name, name
	}
	r.Summarize()
	for _, width := range []int{40, 60, 80, 200} {
		_, matrix, _ := strings.Cut(text(t, r, Options{Width: width}), "\n\n")
		matrix, _, _ = strings.Cut(matrix, "\n\n")
		labels := make(map[string]bool)
		for line := range strings.Lines(matrix) {
			line = strings.TrimRight(line, "\n")
			if n := utf8.RuneCountInString(line); n > width && !strings.Contains(line, "uncertain") {
				t.Errorf("%d columns of %d: %s", n, width, line)
			}
			if strings.HasPrefix(line, "/usr/") {
				labels[strings.Fields(line)[0]] = true
			}
		}
		if len(labels) < 3 {
			t.Errorf("%d columns: %d labels\n%s", width, len(labels), matrix)
		}
	}
}

// TestScreen wants a report of many objects on a screen, with the matrix and what costs most verdicts first, and all of it with -v.
func TestScreen(t *testing.T) {
	r := many(100)
	got := text(t, r, Options{})
	if n := strings.Count(got, "\n"); n > 24 {
		t.Errorf("%d lines:\n%s", n, got)
	}
	const matrix = `100 objects on 3 kernels: 0 work on all that they are for, 96 fail on some, 4 uncertain

                    x86_64
                    5.10  6.1   6.12
o000.o              fails fails ok
o001.o and 3 more   ?     ?     ?
o005.o and 94 more  fails ok    ok
? uncertain

o005.o, o006.o, o007.o and 92 more, x86_64 5.10: struct s0.f … s8.f (9): field absent (x.bpf.c:7) [field-missing]
`
	if !strings.HasPrefix(got, strings.ReplaceAll(matrix, "  x86_64", " x86_64")) && got == "" {
		t.Errorf("%s\nwant\n%s", got, matrix)
	}
	for _, want := range []string{
		"\no000.o             fails fails ok\no001.o and 3 more  ?     ?     ?\no005.o and 94 more fails ok    ok\n? uncertain\n",
		"\no005.o, o006.o, o007.o and 92 more, x86_64 5.10: struct s0.f … s8.f (9): field absent (x.bpf.c:7) [field-missing]\n",
		"\no001.o, o002.o, o003.o and o004.o, every kernel: unknown: fentry/place: ",
		"\nDetails: -v, or --format html -o report.html\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if long := text(t, r, Options{Verbose: true}); !strings.Contains(long, "\no099.o fails ok    ok\n") || strings.Contains(long, "Details") {
		t.Errorf("with -v:\n%s", long)
	}
	required := Options{Require: "debian>=12", Required: func(k int) bool { return k > 0 }}
	got = text(t, r, required)
	for _, want := range []string{
		"Must work (--require debian>=12): 95 of 100 objects on 2 kernels, 4 uncertain   FAIL\n",
		"\no000.o, x86_64 6.1: map arena_buf needs BPF_MAP_TYPE_ARENA (6.9) [map-type-missing]\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	required.Brief = true
	if got := text(t, r, required); strings.Count(got, "\n") != 4 || strings.Contains(got, "\n  ") {
		t.Errorf("brief:\n%s", got)
	}
	required.Brief, required.Quiet = false, true
	if got, want := text(t, r, required), "Must work (--require debian>=12): 95 of 100 objects on 2 kernels, 4 uncertain   FAIL\n"; got != want {
		t.Errorf("quiet:\n%s\nwant\n%s", got, want)
	}
	required.Quiet = false
	o := &r.Objects[0]
	o.Loader = rule.Libbpf
	o.Loaders = append(o.Loaders, verdict.LoaderRow{Loader: rule.Libbpf, Status: o.Status}, verdict.LoaderRow{Loader: rule.EbpfGo, Status: make([]rule.Status, 3)})
	if got, want := text(t, r, required), "\nWith ebpf-go (--loader ebpf-go): o000.o x86_64 6.1 ok\n"; !strings.Contains(got, want) {
		t.Errorf("no %q:\n%s", want, got)
	}
	r.Objects = r.Objects[1:]
	if got := text(t, r, required); !strings.HasPrefix(got, "Must work (--require debian>=12): 95 of 99 objects on 2 kernels, 4 uncertain   UNCERTAIN\n") {
		t.Errorf("without the first object:\n%s", got)
	}
	r.Objects = r.Objects[4:]
	if got := text(t, r, required); !strings.HasPrefix(got, "Must work (--require debian>=12): 95 of 95 objects on 2 kernels   PASS\n") {
		t.Errorf("without the first five objects:\n%s", got)
	}
}

// TestBaselineText wants the first line to say whether something is worse, and little else if nothing is.
func TestBaselineText(t *testing.T) {
	r := many(20)
	r.Version = verdict.ReportVersion
	old := baselineOf(t, r)
	got := text(t, r, Options{Baseline: old, Old: "old.json"})
	if want := "Nothing is worse than old.json\n20 objects on 3 kernels: "; !strings.HasPrefix(got, want) || strings.Count(got, "\n") != 2 {
		t.Errorf("%s\nwant %s", got, want)
	}
	r.Objects[19].Status = []rule.Status{rule.Fails, rule.OK, rule.Fails}
	r.Summarize()
	if got, want := text(t, r, Options{Baseline: old, Old: "old.json"}), "Worse than the baseline: o019.o: fails, was ok (x86_64 6.12)\n20 objects"; !strings.HasPrefix(got, want) {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func baselineOf(t *testing.T, r *verdict.Report) *verdict.Baseline {
	t.Helper()
	file := filepath.Join(t.TempDir(), "old.json")
	var b bytes.Buffer
	if err := errors.Join(JSON(&b, r, Options{}), os.WriteFile(file, b.Bytes(), 0o666)); err != nil {
		t.Fatal(err)
	}
	old, err := verdict.ReadBaseline(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	return old
}

// TestSummary wants ten lines at most, with a baseline what got worse.
func TestSummary(t *testing.T) {
	r := many(100)
	r.Version = verdict.ReportVersion
	summary := func(o Options) string {
		var b strings.Builder
		if err := Summary(&b, r, o); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(b.String(), "\n"); n > 10 {
			t.Errorf("%d lines:\n%s", n, &b)
		}
		return b.String()
	}
	got := summary(Options{Require: "debian>=12", Required: func(k int) bool { return k > 0 }})
	want := "### Must work (--require debian>=12): 95 of 100 objects on 2 kernels, 4 uncertain   FAIL\n\n" +
		"- o000.o, x86\\_64 6.1: map arena\\_buf needs BPF\\_MAP\\_TYPE\\_ARENA (6.9) \\[map-type-missing\\]\n"
	if !strings.HasPrefix(got, want) {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := summary(Options{Baseline: baselineOf(t, r)}); !strings.HasSuffix(got, "\n- Nothing is worse or better than the baseline\n") {
		t.Errorf("%s", got)
	}
}

// TestRequiredCauses wants only causes on kernels that are required, and counts these.
func TestRequiredCauses(t *testing.T) {
	r := many(10)
	for name, f := range map[string]func(Options) string{
		"html":     func(o Options) string { return htmlOf(t, r, o) },
		"markdown": func(o Options) string { var b strings.Builder; _ = Markdown(&b, r, o); return b.String() },
		"sarif":    func(o Options) string { var b strings.Builder; _ = SARIF(&b, r, o); return b.String() },
		"github":   func(o Options) string { var b strings.Builder; _ = GitHub(&b, r, o); return b.String() },
	} {
		o := Options{Require: "debian>=12", Required: func(k int) bool { return k > 0 }}
		all, some := f(Options{}), f(o)
		if name == "html" { // the cells of kernels that are not required have their reasons
			_, all, _ = strings.Cut(all, `"causes":`)
			_, some, _ = strings.Cut(some, `"causes":`)
		}
		if len(some) >= len(all) || name != "html" && (!strings.Contains(all, "s5.f") || strings.Contains(some, "s5.f") || !strings.Contains(some, "ARENA")) {
			t.Errorf("%s: %d bytes of %d:\n%s", name, len(some), len(all), some)
		}
	}
}

// TestRequiredRows wants the matrix and minima of required kernels only, except in verbose text.
func TestRequiredRows(t *testing.T) {
	r := many(8) // the first fails on 6.1, and those from the sixth on only on 5.10
	o := Options{Require: "debian>=12", Required: func(k int) bool { return k > 0 }}
	got := text(t, r, o)
	if strings.Contains(got, "5.10") || !strings.Contains(got, "\no007.o ok    ok\n") {
		t.Errorf("%s", got)
	}
	o.Verbose = true
	if got := text(t, r, o); !strings.Contains(got, "\no007.o fails ok    ok\n") {
		t.Errorf("with -v:\n%s", got)
	}
	o.Verbose = false
	if want, page := `"required":[1,2]`, htmlOf(t, r, o); !strings.Contains(page, want) {
		t.Errorf("no %s", want)
	}
	all := r.Only(func(int) bool { return true })
	if a, b := text(t, r, Options{Verbose: true}), text(t, all, Options{Verbose: true}); a != b {
		t.Errorf("all kernels are not the same as no choice:\n%s\n%s", a, b)
	}
}

// TestPageVerdict wants the verdict of the page in a word and a colour, and the kernels that readers look for first before others.
func TestPageVerdict(t *testing.T) {
	r := many(6)
	r.Kernels = append([]verdict.Column{{Name: "android/12/arm64/5.10.1"}}, r.Kernels...)
	for i := range r.Programs {
		s := append([]rule.Status{rule.OK}, r.Programs[i].Status...)
		r.Programs[i].Status, r.Programs[i].Load, r.Objects[i].Status, r.Objects[i].Load = s, s, s, s
	}
	r.Summarize()
	for required, want := range map[int]string{
		0: fmt.Sprintf(`"verdict":"UNCERTAIN","verdictCell":%d`, cellMayFail), 2: fmt.Sprintf(`"verdict":"FAIL","verdictCell":%d`, cellFails),
	} {
		page := htmlOf(t, r, Options{Require: "x", Required: func(k int) bool { return k == required || k == 3 }})
		if !strings.Contains(page, want) {
			t.Errorf("no %s", want)
		}
		if debian, android := strings.Index(page, `"debian/11/`), strings.Index(page, `"android/12/`); debian < 0 || debian > android {
			t.Errorf("debian is at %d, android at %d", debian, android)
		}
	}
}

func htmlOf(t *testing.T, r *verdict.Report, o Options) string {
	t.Helper()
	var b strings.Builder
	if err := HTML(&b, r, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestBlocks wants two machines with fifteen lines side by side on a terminal, and more machines below.
func TestBlocks(t *testing.T) {
	lines := []string{"4.18", "4.19", "5.4", "5.10", "5.15", "6.1", "6.6", "6.8", "6.12", "7.1"}
	report := func(machines map[string]int) *verdict.Report {
		r := &verdict.Report{}
		row := verdict.ObjectRow{Object: "tracer.bpf.o"}
		for _, m := range []string{"x86_64", "arm64", "arm", "ppc64le", "s390x"} {
			for i, l := range lines[:machines[m]] {
				r.Kernels = append(r.Kernels, verdict.Column{Name: "debian/12/" + m + "/" + l + ".0-1"})
				row.Status = append(row.Status, []rule.Status{rule.OK, rule.Fails}[i%2])
			}
		}
		r.Objects = []verdict.ObjectRow{row}
		r.Summarize()
		return r
	}
	got := text(t, report(map[string]int{"x86_64": 8, "arm64": 7}), Options{})
	if n := strings.Count(got, "\ntracer.bpf.o"); n != 1 {
		t.Errorf("%d blocks:\n%s", n, got)
	}
	got = text(t, report(map[string]int{"x86_64": 10, "arm64": 8, "arm": 2, "ppc64le": 2, "s390x": 2}), Options{})
	if n := strings.Count(got, "\ntracer.bpf.o"); n < 2 {
		t.Errorf("%d blocks:\n%s", n, got)
	}
	for line := range strings.Lines(got) {
		if n := len([]rune(line)); n > terminal+1 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if words := strings.Count(got, " ok") + strings.Count(got, " fails"); words != 24+1 {
		t.Errorf("%d cells:\n%s", words, got)
	}
}
