// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

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

// TestScreen wants a report of many objects on a screen, with what blocks most first, and all of it with -v.
func TestScreen(t *testing.T) {
	r := many(100)
	got := text(t, r, Options{})
	if n := strings.Count(got, "\n"); n > terminal {
		t.Errorf("%d lines:\n%s", n, got)
	}
	for _, want := range []string{
		"100 objects on 3 kernels: 0 on all that they are for, 96 not on some, 4 for the loader to decide\n1. o009.o, o018.o, o027.o and 8 more, on 5.10 only: needs struct s0.f (x.bpf.c:7) [field-missing]\n",
		"The loader decides: 4 objects attach to what it sets (o001.o, o002.o, o003.o and o004.o)\n",
		"   and 4 other reasons\n", "\nDetails: -v, or --format html -o report.html\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if long := text(t, r, Options{Verbose: true}); !strings.Contains(long, "\nprograms:\n") || strings.Count(long, "\n") < 200 {
		t.Errorf("with -v:\n%s", long)
	}
	required := Options{Require: "debian>=12", Required: func(k int) bool { return k > 0 }}
	got = text(t, r, required)
	want := "Must work (--require debian>=12): 95 of 100 objects on 2 kernels, 4 for the loader to decide   FAIL\n" +
		"1. o000.o, on 6.1 only: map arena_buf needs BPF_MAP_TYPE_ARENA (6.9) [map-type-missing]\n"
	if !strings.HasPrefix(got, want) {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	want += "2. The loader decides: 4 objects attach to what it sets (o001.o, o002.o, o003.o and o004.o)\nDetails: -v, or --format html -o report.html\n"
	required.Brief = true
	if got := text(t, r, required); got != want {
		t.Errorf("brief:\n%s\nwant\n%s", got, want)
	}
	required.Brief, required.Quiet = false, true
	if got, want := text(t, r, required), want[:strings.Index(want, "\n")+1]; got != want {
		t.Errorf("quiet:\n%s\nwant\n%s", got, want)
	}
	required.Quiet = false
	o := &r.Objects[0]
	o.Loaders = append(o.Loaders, verdict.LoaderRow{Loader: rule.Libbpf, Status: o.Status}, verdict.LoaderRow{Loader: rule.EbpfGo, Status: make([]rule.Status, 3)})
	if got := text(t, r, required); !strings.HasPrefix(got, "Must work (--require debian>=12): 95 of 100 objects with libbpf and 96 with ebpf-go on 2 kernels, 4 for the loader to decide   FAIL\n") {
		t.Errorf("with a loader that loads all:\n%s", got)
	}
	if got := text(t, r, Options{}); !strings.HasPrefix(got, "100 objects on 3 kernels: 0 with libbpf and 1 with ebpf-go on all that they are for, 96 not on some, 4 for") {
		t.Errorf("with a loader that loads all:\n%s", got)
	}
	r.Objects = r.Objects[1:]
	if got := text(t, r, required); !strings.HasPrefix(got, "Must work (--require debian>=12): 95 of 99 objects on 2 kernels, 4 for the loader to decide   UNCERTAIN\n") {
		t.Errorf("without the first object:\n%s", got)
	}
	r.Objects = r.Objects[4:]
	if got := text(t, r, required); !strings.HasPrefix(got, "Must work (--require debian>=12): 95 of 95 objects on 2 kernels   PASS\n") {
		t.Errorf("without the first five objects:\n%s", got)
	}
}

// TestScreenReasons wants doubts to be named as such, and the kernels of a machine to be all if they are.
func TestScreenReasons(t *testing.T) {
	r := many(1)
	p := &r.Programs[0]
	fails := rule.Finding{Status: rule.Fails, Code: rule.HelperMap, Subject: "bpf_map_lookup_elem", Args: rule.Args{Name: "XSKMAP", Other: "xsks_map"}}
	doubt := fails
	doubt.Status, doubt.Doubt = rule.MayFail, rule.OlderRelease
	p.Findings = []verdict.KernelFinding{{Finding: fails, Kernels: []int{0}}, {Finding: doubt, Kernels: []int{1}}}
	p.Status[1] = rule.MayFail
	want := "1. o000.o, on 5.10 only: helper bpf_map_lookup_elem with map xsks_map: helper that does not take maps of this type (program p) [helper-map]\n" +
		"   Use another helper or type of maps, or provide other programs for such kernels.\n" +
		"2. Uncertain: o000.o, on 6.1 only: helper bpf_map_lookup_elem with map xsks_map: helper that does not take maps of this type (program p) [helper-map]\n"
	var b strings.Builder
	if err := newScreen(r, Options{}).write(&b, Options{}); err != nil || !strings.Contains(b.String(), want) {
		t.Errorf("%v\n%s\nwant\n%s", err, &b, want)
	}

	// Several things that are missing are one reason.
	r = many(1)
	r.Programs[0].Findings = append(r.Programs[0].Findings, verdict.KernelFinding{Kernels: []int{0, 1},
		Finding: rule.Finding{Status: rule.Fails, Code: rule.HelperMap, Subject: "bpf_map_lookup_elem"}})
	for _, helper := range []string{"bpf_loop", "bpf_for_each_map_elem"} {
		r.Programs[0].Findings = append(r.Programs[0].Findings, verdict.KernelFinding{Kernels: []int{0, 1}, Finding: rule.Finding{Status: rule.Fails, Code: rule.HelperMissing, Subject: helper}})
	}
	want = "\n1. o000.o, on 6.1 and older: needs helper bpf_for_each_map_elem (5.13), helper bpf_loop (5.17), BPF_MAP_TYPE_ARENA (6.9) for map arena_buf and helper bpf_map_lookup_elem (program p)\n"
	if got := text(t, r, Options{Brief: true}); !strings.Contains(got, want) {
		t.Errorf("%s\nwant\n%s", got, want)
	}

	r = many(1)
	r.Kernels[2].Name = "debian/13/arm64/6.12.1-arm64"
	r.Programs[0].Status[2] = rule.Other
	if got := text(t, r, Options{Brief: true}); !strings.Contains(got, "\n1. o000.o, on all x86_64 kernels: map arena_buf needs") {
		t.Errorf("%s", got)
	}
	r = many(1)
	r.Kernels[0].Name, r.Kernels[1].Name = "debian/11/arm64/weekly", "debian/12/s390x/6.1.0-1-s390x"
	r.Objects[0].Decides[0].Kernels, r.Programs[0].Findings[0].Kernels = []int{0, 2}, []int{0, 2}
	r.Programs[0].Status[1], r.Programs[0].Status[2] = rule.Other, rule.Fails
	if got := text(t, r, Options{Brief: true}); !strings.Contains(got, "\n1. o000.o, on all arm64 and x86_64 kernels: map arena_buf needs") {
		t.Errorf("%s", got)
	}
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
	want := "### Must work (--require debian>=12): 95 of 100 objects on 2 kernels, 4 for the loader to decide   FAIL\n\n" +
		"- o000.o, on 6.1 only: map arena\\_buf needs BPF\\_MAP\\_TYPE\\_ARENA (6.9) \\[map-type-missing\\]\n" +
		"- The loader decides: 4 objects attach to what it sets (o001.o, o002.o, o003.o and o004.o)\n"
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := summary(Options{}); !strings.Contains(got, "\n- and ") {
		t.Errorf("%s", got)
	}
	file := filepath.Join(t.TempDir(), "old.json")
	var b bytes.Buffer
	if err := errors.Join(JSON(&b, r, Options{}), os.WriteFile(file, b.Bytes(), 0o666)); err != nil {
		t.Fatal(err)
	}
	old, err := verdict.ReadBaseline(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	if got := summary(Options{Baseline: old}); !strings.HasSuffix(got, "\n- Nothing is worse or better than the baseline\n") {
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

// TestRequiredHeadlines wants headlines to count the kernels that are required, except in verbose text.
func TestRequiredHeadlines(t *testing.T) {
	r := many(1) // which fails on 5.10 and 6.1
	works := &r.Objects[0]
	works.Headline = verdict.Headline{Since: "6.12", Gap: "6.1", Works: 1, Total: 3}
	works.Suggestion = &verdict.Suggestion{Options: []verdict.Option{{Name: "loader-map", Value: "m"}}, Row: verdict.ObjectRow{
		Object: works.Object, Status: make([]rule.Status, 3), Headline: verdict.Headline{Since: "5.10", Works: 3, Total: 3}}}
	for _, tt := range []struct {
		o    Options
		want string
	}{
		{Options{}, "Linux 6.12 and later; 1 of 3 kernels, none between 6.1 and 6.12."},
		{Options{}, "Linux 5.10 and later; 3 of 3 kernels."},
		{Options{Required: func(k int) bool { return k > 0 }}, "Linux 6.12 and later; 1 of 2 required kernels."},
		{Options{Required: func(k int) bool { return k > 0 }}, "Linux 5.10 and later; 2 of 2 required kernels."},
		{Options{Required: func(k int) bool { return k == 0 }}, "None of 1 required kernel."},
		{Options{Required: func(k int) bool { return false }}, "No required kernel here is one that it is for."},
		{Options{Required: func(k int) bool { return k == 0 }, Verbose: true}, "Linux 6.12 and later; 1 of 3 kernels"},
	} {
		forms := map[string]string{"text": text(t, r, tt.o)}
		if !tt.o.Verbose {
			var b strings.Builder
			if err := Markdown(&b, r, tt.o); err != nil {
				t.Fatal(err)
			}
			forms["html"], forms["markdown"] = htmlOf(t, r, tt.o), b.String()
		}
		for name, got := range forms {
			if !strings.Contains(got, tt.want) {
				t.Errorf("%s: no %q:\n%s", name, tt.want, got)
			}
		}
	}
}

// TestRequiredObjects wants objects that work on all required kernels to look like it, and no exceptions on others.
func TestRequiredObjects(t *testing.T) {
	r := many(8) // the first fails on 6.1, and those from the sixth on only on 5.10
	for i := range r.Objects {
		o := &r.Objects[i]
		for _, s := range o.Status {
			o.Headline.Count(s)
		}
		o.Headline.Since = "5.10"
	}
	r.Objects[7].Headline.Exceptions = []verdict.Exception{{Family: "debian x86_64", Kernels: []int{0}}, {Family: "debian x86_64", Kernels: []int{2}}}
	o := Options{Require: "debian>=12", Required: func(k int) bool { return k > 0 }}
	var b strings.Builder
	if err := longText(&b, r, o); err != nil {
		t.Fatal(err)
	}
	if got, want := b.String(), "\n  and 3 objects without failures\n"; !strings.Contains(got, want) || strings.Contains(got, "o005.o: Linux") {
		t.Errorf("no %q:\n%s", want, got)
	}
	want := "Linux 5.10 and later; 2 of 2 required kernels. Fails on debian x86_64 6.12.1-amd64."
	if got := newView(r).of(o).headline(&r.Objects[7]); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	for name, f := range map[string]func(io.Writer, *verdict.Report, Options) error{"text": longText, "markdown": Markdown} {
		var b strings.Builder
		if err := f(&b, r, o); err != nil {
			t.Fatal(err)
		}
		want := "8 programs of 8 objects on 2 required kernels: 1 fails, 4 unknown, 3 ok\n"
		if name == "markdown" {
			want = "### Portability: Must work (--require debian>=12): 3 of 8 objects on 2 kernels, 4 for the loader to decide   FAIL\n\n" + want
		}
		if !strings.HasPrefix(b.String(), want) {
			t.Errorf("%s: no %q:\n%s", name, want, &b)
		}
	}
	if want, page := `"required":[1,2]`, htmlOf(t, r, o); !strings.Contains(page, want) {
		t.Errorf("no %s", want)
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
