// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
)

// TestBadge holds what badges say of minima, of one object or several, on one machine or two.
func TestBadge(t *testing.T) {
	since := func(since, until, perhaps string) verdict.Minimum {
		return verdict.Minimum{Machine: "x86_64", Since: since, Until: until, Perhaps: perhaps, Tried: []int{0}}
	}
	arm := func(m verdict.Minimum) verdict.Minimum { m.Machine = "arm64"; return m }
	for _, tt := range []struct {
		want, color string
		objects     [][]verdict.Minimum
	}{
		{"5.8+", green, [][]verdict.Minimum{{since("5.8", "", "")}}},
		{"5.10+", green, [][]verdict.Minimum{{since("5.8", "", "")}, {since("5.10", "", "")}, {since("4.18", "", "")}}},
		{"5.8+", yellow, [][]verdict.Minimum{{since("5.8", "", "5.4")}}},
		{"5.8?", yellow, [][]verdict.Minimum{{since("", "", "5.8")}}},
		{"5.8 to 6.1", yellow, [][]verdict.Minimum{{since("5.8", "6.12", "")}, {since("4.18", "6.1", "")}}},
		{"5.8 only", yellow, [][]verdict.Minimum{{since("5.8", "5.8", "")}}},
		{"none", red, [][]verdict.Minimum{{since("5.8", "", "")}, {since("", "", "")}}},
		{"none", red, [][]verdict.Minimum{{since("6.1", "", "")}, {since("4.18", "5.10", "")}}},
		{"5.8+", green, [][]verdict.Minimum{{since("5.8", "", "")}, {}}}, // no kernel is for the second
		{"5.8+", green, [][]verdict.Minimum{{since("5.8", "", ""), arm(since("5.8", "", ""))}}},
		{"x86_64 5.8+, arm64 5.10+", green, [][]verdict.Minimum{{since("5.8", "", ""), arm(since("5.10", "", ""))}}},
		{"x86_64 5.8+, arm64 none", red, [][]verdict.Minimum{{since("5.8", "", ""), arm(since("", "", ""))}}},
		{"unknown", grey, [][]verdict.Minimum{{}}},
	} {
		r := new(verdict.Report)
		for _, m := range tt.objects {
			r.Objects = append(r.Objects, verdict.ObjectRow{Minima: m})
		}
		var b bytes.Buffer
		if err := Badge(&b, r, Options{}); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); !strings.Contains(got, `aria-label="Linux: `+tt.want+`"`) || !strings.Contains(got, `fill="`+tt.color+`"/>`+"\n<text") {
			t.Errorf("want %s on %s:\n%s", tt.want, tt.color, got)
		}
	}
}

// TestDrawBadge draws words that are markup, which must stay words.
func TestDrawBadge(t *testing.T) {
	const label, value = `<a href="x">`, "é & ü"
	svg := DrawBadge(label, value, Blue)
	var parsed struct {
		Width string   `xml:"width,attr"`
		Label string   `xml:"aria-label,attr"`
		Text  []string `xml:"text"`
	}
	if err := xml.Unmarshal([]byte(svg), &parsed); err != nil {
		t.Fatal(err)
	}
	if parsed.Label != label+": "+value || len(parsed.Text) != 2 || parsed.Text[0] != label || parsed.Text[1] != value || parsed.Width != "151" {
		t.Errorf("%+v", parsed)
	}
	if regexp.MustCompile(`https?://`).MatchString(strings.ReplaceAll(svg, "http://www.w3.org/2000/svg", "")) {
		t.Error("the badge loads something")
	}
}

// TestTable has a name with markup, a distribution whose kernels differ, one that an object is not for, and a kernel without a name.
func TestTable(t *testing.T) {
	r := new(verdict.Report)
	for _, n := range []string{"debian/sid/x86_64/7.2.1-amd64", "debian/12/arm64/6.1.0-50-arm64", "debian/12/x86_64/6.1.0-47-amd64", "rhel/8/x86_64/4.18.0-553.el8.x86_64",
		"ubuntu/22.04/x86_64/6.8.0-1-generic", "ubuntu/22.04/x86_64/5.15.0-1-generic", "some/vmlinux"} {
		r.Kernels = append(r.Kernels, verdict.Column{Name: n})
	}
	r.Objects = []verdict.ObjectRow{
		{Object: "a|b.o", Status: []rule.Status{rule.OK, rule.Fails, rule.Guarded, rule.Fails, rule.MayFail, rule.Unknown, rule.OK}},
		{Object: "c.o", Status: []rule.Status{rule.Fails, rule.Other, rule.OK, rule.Other, rule.MayFail, rule.OK, rule.Fails}},
	}
	var b bytes.Buffer
	if err := Table(&b, r, Options{}); err != nil {
		t.Fatal(err)
	}
	const want = `| distribution | Linux | a\|b.o | c.o |
|---|---|:-:|:-:|
| some/vmlinux |  | ✅ | ❌ |
| debian 12 | 6.1 | 1 of 2 | ✅ |
| debian sid | 7.2 | ✅ | ❌ |
| rhel 8 | 4.18 | ❌ |  |
| ubuntu 22.04 | 5.15 to 6.8 | ⚠️ | 1 of 2 |
`
	if b.String() != want {
		t.Errorf("%s\nwant\n%s", &b, want)
	}
}

// TestTableTurned has more objects than fit side by side.
func TestTableTurned(t *testing.T) {
	r := &verdict.Report{Kernels: []verdict.Column{{Name: "debian/12/x86_64/6.1.0-1"}, {Name: "debian/13/x86_64/6.12.0-1"}, {Name: "vmlinux"}}}
	for i := range 13 {
		r.Objects = append(r.Objects, verdict.ObjectRow{Object: fmt.Sprint("o", i), Status: []rule.Status{rule.Fails, rule.OK, rule.MayFail}})
	}
	var b bytes.Buffer
	if err := Table(&b, r, Options{}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if want := "| object | vmlinux | debian 12, Linux 6.1 | debian 13, Linux 6.12 |\n|---|:-:|:-:|:-:|\n| o0 | ⚠️ | ❌ | ✅ |"; strings.Join(lines[:3], "\n") != want || len(lines) != 15 {
		t.Errorf("%d lines: %s", len(lines), &b)
	}
}
