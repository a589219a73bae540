// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/report/codes"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/pkg/relo"
)

func pageOf(t *testing.T, r *verdict.Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, r, Options{Version: "v1.2.3", Command: "btfgen check --format html a.o b.o"}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// chromium runs a headless Chromium on a page and returns what it prints; without
// Chromium the test is skipped.
func chromium(t *testing.T, page string, args ...string) string {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("needs chromium")
	}
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	args = append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-color-profile=srgb"}, args...)
	out, err := exec.Command(program, append(args, "file://"+file)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// chromiumTitle returns the title that the scripts of a page leave.
func chromiumTitle(t *testing.T, page string, args ...string) string {
	t.Helper()
	_, rest, _ := strings.Cut(chromium(t, page, append(args, "--dump-dom")...), "<title>")
	title, _, _ := strings.Cut(rest, "</title>")
	return html.UnescapeString(title)
}

// TestPage opens the page, folds, filters, follows a link, taps on a cell and goes
// to another with the keyboard, and reads what it shows.
func TestPage(t *testing.T) {
	slow.Skip(t)
	const script = `<script>
onerror = (m, f, line) => document.title = out.join("\n") + m + " in line " + line;
const shown = () => [...document.querySelectorAll("#rows > tr")].map(e => e.className + " " + (e.x ? e.x.n : e.textContent)).join(", ");
const out = [];
const say = (what, text) => out.push(what + ": " + text);
const press = (e, key) => e.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const input = (id, v) => { $(id).value = v; $(id).dispatchEvent(new Event("input")) };
const tap = (tr, column) => { const c = tr.querySelector(".cells"), at = c.getBoundingClientRect();
  c.dispatchEvent(new MouseEvent("click", { bubbles: true, clientX: at.left + W * column + 3, clientY: at.top + 3 })) };
const heads = () => [...$("families").children, ...$("columns").children].map(e => e.textContent).join(", ");
say("title", $("title").textContent);
say("run", $("run").textContent + " " + $("command").textContent);
say("objects", $("objects").textContent);
say("causes", $("causes").textContent);
say("heads", heads());
say("worst first", shown());
say("cells", [...document.querySelectorAll(".cells")].map(e => e.textContent).join(" "));
$("o1").querySelector("button").click(); say("folded", shown()); $("o1").querySelector("button").click();
tap($("p0"), 2); say("tapped", shown());
press($("p0").querySelector("button"), "ArrowLeft"); say("left", shown());
press($("p0").querySelector("button"), "ArrowDown"); say("focus", document.activeElement.closest("tr").id);
tap($("o0"), 1); say("object", $("o0").nextSibling.textContent);
input("so", "2"); say("by name", shown());
input("fk", "arm64"); input("fs", "4"); say("arm64", shown());
input("fk", "x86_64 6.1."); input("fs", "0"); input("fp", "a.o S.F"); say("found", shown());
input("fk", ""); input("fp", ""); input("co", "1"); say("series", heads()); input("co", "2"); say("distributions", heads());
$("folds").lastChild.click(); say("one unfolded", heads() + "; " + $("folds").textContent + " " + document.activeElement.textContent);
document.querySelector('#causes a[href="#p0"]').click();
say("link", document.activeElement.closest("tr").id + " " + $("p0").nextSibling.className);
document.title = out.join("\n");
</script>`
	want := `title: btfgen check: 2 objects on 5 kernels: 1 works on all that it is for, 1 fails on some
run: btfgen v1.2.3 what was runbtfgen check --format html a.o b.o
objects: Objects
x86_64arm64unknown5.106.16.126.1some/vmlinuxa.ox86_64 5.10 only (the oldest here, 6.1 to 6.12 fail), arm64 6.1 (the oldest here), unknown okokfailsfailsokok` +
		`b.ox86_64 5.10 (the oldest here), arm64 6.1 (the oldest here), unknown okokokokokokWith ebpf-go (--loader ebpf-go): a.o x86_64 6.12 ok
causes: What to do` + codes.Of(relo.FieldMissing).Fix + `X struct s.f, .g|h: field absent [field-missing] · x86_64 6.1, 6.12 · a.o: broken
heads: debian x86_64, others, debian arm64, 5.10.0-30-amd64, 6.1.0-47-amd64, 6.12.107+deb13-amd64, vmlinux, 6.1.0-50-arm64
worst first: o a.o, p broken, p guard, o b.o, p perhaps, p <fine>
cells: ·XX·· ·XX·· ·gg·· ····· aaaua ·····
folded: o a.o, p broken, p guard, o b.o
tapped: o a.o, p on broken, detail X fails on debian/13/x86_64/6.12.107+deb13-amd64a.o · kprobe/xX struct s.f: field absent [field-missing] ./x.bpf.c:12 ← here2 kernels` +
		`X struct s.g|h: field absent [field-missing] ./x.bpf.c:9 ← here2 kernels, p guard, o b.o, p perhaps, p <fine>
left: o a.o, p on broken, detail X fails on debian/12/x86_64/6.1.0-47-amd64a.o · kprobe/xX struct s.f: field absent [field-missing] ./x.bpf.c:12 ← here2 kernels` +
		`X struct s.g|h: field absent [field-missing] ./x.bpf.c:9 ← here2 kernels, p guard, o b.o, p perhaps, p <fine>
focus: p1
object: X fails on debian/12/x86_64/6.1.0-47-amd64x86_64 5.10 only (the oldest here, 6.1 to 6.12 fail), arm64 6.1 (the oldest here), unknown okdecided by broken
by name: o a.o, p broken, p guard, o b.o, p <fine>, p perhaps
arm64: o b.o, p perhaps
found: o a.o, p broken, p guard
series: debian x86_64, others, debian arm64, 5.10.0-30-amd64, 6.1.0-47-amd64, 6.12.107+deb13-amd64, vmlinux, 6.1.0-50-arm64
distributions: debian x86_64, others, debian arm64, all (3), vmlinux, 6.1.0-50-arm64
one unfolded: debian x86_64, others, debian arm64, 5.10.0-30-amd64, 6.1.0-47-amd64, 6.12.107+deb13-amd64, vmlinux, 6.1.0-50-arm64; ▾ debian x86_64 ▾ debian x86_64
link: p0 detail`
	if diff := cmp.Diff(want, chromiumTitle(t, pageOf(t, sample())+script)); diff != "" {
		t.Errorf("- want, + got:\n%s", diff)
	}
}

// TestPageFilters checks that filters apply to causes, too, and that the URL keeps them; and that a long name leaves room for the map.
func TestPageFilters(t *testing.T) {
	slow.Skip(t)
	const script = `<script>
const out = [], say = (what, text) => out.push(what + ": " + text);
const input = (id, v) => { $(id).value = v; $(id).dispatchEvent(new Event("input")) };
const causes = () => $("causes").hidden + " " + [...document.querySelectorAll("#advice li")].map(e => e.textContent).join("; ");
const open = hash => { history.replaceState(null, "", hash); dispatchEvent(new HashChangeEvent("hashchange")) };
input("fk", "debian/12"); say("kernels", causes() + " " + location.hash);
input("fp", "perhaps"); say("programs", causes() + " " + location.hash);
input("fp", ""); input("fk", "x86_64"); input("fs", "5"); say("at least", location.hash);
document.querySelector('#causes a[href="#p0"]').click(); say("link", location.hash);
input("fk", ""); input("fs", "0"); say("no filter", location.hash);
open("#p2&fk=arm64%20&co=2&fs=none&so=2"); say("opened", ["fp", "fk", "fs", "so", "co"].map(id => $(id).value).join(",") + " " + $("columns").textContent + " " + $("p2").nextSibling.className);
open("#&fk=%zz"); say("damaged", $("fk").value);
say("width", document.querySelector("tbody th").offsetWidth < innerWidth / 3);
document.title = out.join("\n");
</script>`
	r := sample()
	r.Programs[0].Section = "kprobe/" + strings.Repeat("a_very_long_name", 20)
	const cause = "X struct s.f, .g|h: field absent [field-missing]"
	want := `kernels: false ` + cause + ` · x86_64 6.1, 6.12 · a.o: broken #&fk=debian%2F12
programs: true  #&fp=perhaps&fk=debian%2F12
at least: #&fk=x86_64&fs=5
link: #p0&fk=x86_64&fs=5
no filter: #p0
opened: ,arm64 ,0,2,2 6.1.0-50-arm64 detail
damaged: arm64 
width: true`
	if diff := cmp.Diff(want, chromiumTitle(t, pageOf(t, r)+script, "--window-size=1280,900")); diff != "" {
		t.Errorf("- want, + got:\n%s", diff)
	}
}

// TestPageMachines leaves out kernels of machines that nothing is for.
func TestPageMachines(t *testing.T) {
	slow.Skip(t)
	r := sample()
	for i := range r.Programs {
		r.Programs[i].Status[3] = rule.Other
	}
	got := chromiumTitle(t, pageOf(t, r)+`<script>document.title = $("families").textContent + ", " + $("tip").textContent</script>`)
	if want := "debian x86_64others, 4 of 4 programs, 4 of 5 kernels; 1 for machines of none of the programs"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// looks are the sizes and colours that the page is looked at in.
func looks(f func(name string, args ...string)) {
	for _, width := range []int{390, 768, 1280} {
		for i, scheme := range []string{"dark", "light"} {
			f(fmt.Sprintf("%d-%s", width, scheme), fmt.Sprintf("--window-size=%d,900", width), fmt.Sprintf("--blink-settings=preferredColorScheme=%d", i))
		}
	}
}

// framed shows a page with a given width, as Chromium makes no window narrower than 500 pixels.
func framed(page string, width int) string {
	return fmt.Sprintf(`<!DOCTYPE html><body style="margin:0"><iframe style="border:0;width:%dpx;height:900px" srcdoc="%s"></iframe>`, width, html.EscapeString(page))
}

// TestPageObjects wants executables and objects that fail on required kernels first, and others not marked for what fails elsewhere.
func TestPageObjects(t *testing.T) {
	slow.Skip(t)
	r := many(6)
	r.Executables = []verdict.ObjectRow{{Object: "fine", Status: make([]rule.Status, 3), Load: make([]rule.Status, 3)},
		{Object: "broken", Status: []rule.Status{0, rule.Fails, 0}, Load: []rule.Status{0, rule.Fails, 0}}}
	r.Summarize()
	var b bytes.Buffer
	if err := HTML(&b, r, Options{Require: "debian>=12", Required: func(k int) bool { return k > 0 }}); err != nil {
		t.Fatal(err)
	}
	got := chromiumTitle(t, b.String()+`<script>document.title = [...document.querySelectorAll("#matrix tbody tr")].map(e => [e.firstChild.firstChild, ...e.querySelectorAll("td")].map(e => e.textContent).join(" ")).join(", ")</script>`)
	if want := "broken fails ok, o000.o fails ok, o001.o ? ?, o002.o ? ?, o003.o ? ?, o004.o ? ?, fine ok ok, o005.o ok ok"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// TestAxe has axe-core look at the page, with something open.
func TestAxe(t *testing.T) {
	raceflag.SkipSerial(t)
	axe, err := os.ReadFile(module(t, "axe-core/axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	page := pageOf(t, sample()) + "<script>" + string(axe) + `</script><script>
toggle($("p0"), 4); $("command").open = true;
axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }).then(r => document.title = JSON.stringify({
  passes: r.passes.length, violations: r.violations.map(v => v.id + ": " + v.nodes.map(n => n.html + " " + n.failureSummary).join("; ")) }));
</script>`
	looks(func(name string, args ...string) {
		title := chromiumTitle(t, page, append(args, "--virtual-time-budget=20000")...)
		var r struct {
			Passes     int
			Violations []string
		}
		if err := json.Unmarshal([]byte(title), &r); err != nil || r.Passes < 20 {
			t.Fatalf("%s: %v: %s", name, err, title)
		}
		for _, v := range r.Violations {
			t.Errorf("%s: %s", name, v)
		}
	})
}

// TestScreenshots leaves pictures of the page in the directory that BTFGEN_SCREENSHOTS names.
func TestScreenshots(t *testing.T) {
	raceflag.SkipSerial(t)
	dir := os.Getenv("BTFGEN_SCREENSHOTS")
	if dir == "" {
		t.Skip("needs BTFGEN_SCREENSHOTS, a directory for pictures")
	}
	for what, r := range map[string]*verdict.Report{"small": sample(), "large": large()} {
		page := pageOf(t, r) + `<script>document.querySelector("tr.p .cells").click()</script>`
		looks(func(name string, args ...string) {
			width, _, _ := strings.Cut(name, "-")
			n, _ := strconv.Atoi(width)
			file := filepath.Join(dir, what+"-"+name+".png")
			chromium(t, framed(page, n), append(args, "--screenshot="+file)...)
			if s, err := os.Stat(file); err != nil || s.Size() < 10_000 {
				t.Errorf("%s: no picture: %v", file, err)
			}
		})
	}
}

// TestContrast holds the colours of the page to 4.5:1, light and dark.
func TestContrast(t *testing.T) {
	schemes := regexp.MustCompile(`:root \{[^}]*\}`).FindAllString(page, -1)
	if len(schemes) != 2 {
		t.Fatalf("%d schemes of colours", len(schemes))
	}
	for _, s := range schemes {
		colors := make(map[string]float64) // luminance
		for _, m := range regexp.MustCompile(`--(\w+): #(\w{6})`).FindAllStringSubmatch(s, -1) {
			for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
				n, _ := strconv.ParseUint(m[2][2*i:2*i+2], 16, 8)
				x := float64(n) / 255
				if x <= 0.04045 {
					x /= 12.92
				} else {
					x = math.Pow((x+0.055)/1.055, 2.4)
				}
				colors[m[1]] += weight * x
			}
		}
		pairs := [][2]string{{"fg", "bg"}, {"soft", "bg"}, {"link", "bg"}, {"fg", "sel"}, {"soft", "sel"}}
		for c := range numCell {
			pairs = append(pairs, [2]string{fmt.Sprintf("f%d", c), fmt.Sprintf("b%d", c)})
		}
		for _, p := range pairs {
			a, okA := colors[p[0]]
			b, okB := colors[p[1]]
			if ratio := (max(a, b) + 0.05) / (min(a, b) + 0.05); !okA || !okB || ratio < 4.5 {
				t.Errorf("%s on %s: %.2f", p[0], p[1], ratio)
			}
		}
	}
}
