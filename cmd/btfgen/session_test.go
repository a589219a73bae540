// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"html"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/btfgen/btfgen/internal/report"
	"github.com/btfgen/btfgen/internal/testing/slow"
)

const sessionPicture = "../../docs/images/session.svg"

// session is the input in the picture of a terminal.
var session = []string{
	"btfgen generate --btf kernels/ -o tracer.btfa execsnoop.bpf.o",
	"btfgen archive lookup tracer.btfa --os-release debian12 --release 6.1.0-47-amd64 --arch x86_64",
	"btfgen check --btf kernels/ --select x86_64 execsnoop.bpf.o tool.bpf.o",
}

// TestSession compares the picture of a terminal with the output of the commands. Run it with -update to write the file.
func TestSession(t *testing.T) {
	r := readerIn(t, map[string]string{
		"kernels": "../../testdata/vmlinux", "execsnoop.bpf.o": pageObject, "tool.bpf.o": "../../testdata/bpf/tool.bpfel.o",
	})
	r.write("debian12", "ID=debian\nVERSION_ID=12\n")
	var lines []string
	for _, command := range session {
		cmd := exec.Command("sh", "-c", command+" --color always")
		cmd.Dir, cmd.Env = r.dir, r.env
		out, err := cmd.CombinedOutput()
		if err != nil && exitCode(err) != statusFindings {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		lines = append(lines, "\x1b[1m$ "+command+"\x1b[0m")
		// Only how long it took differs from run to run.
		out = took.ReplaceAll(out, []byte(" in 200ms\n"))
		lines = append(lines, strings.Split(strings.TrimSpace(string(out)), "\n")...)
		lines = append(lines, "")
	}
	got := drawTerminal(lines[:len(lines)-1])
	if *update {
		if err := os.WriteFile(sessionPicture, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(sessionPicture)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s is not what commands print, run: go test ./cmd/btfgen -run TestSession -update\n%s", sessionPicture, d)
	}
}

var (
	took    = regexp.MustCompile(` in [0-9.]+m?s\n`)
	colour  = regexp.MustCompile("\x1b\\[([0-9;]*)m")
	colours = map[string]string{"1": "b", "31": "r", "32": "g", "33": "y", "35": "m", "36": "c"}
)

// terminalWidth is the width of the terminal in characters.
const terminalWidth = 100

// wrapTerminal breaks a line as a terminal does.
func wrapTerminal(line string) (all []string) {
	at, columns := 0, 0
	for i := 0; i < len(line); {
		if m := colour.FindStringIndex(line[i:]); m != nil && m[0] == 0 {
			i += m[1]
			continue
		}
		if columns == terminalWidth {
			all, at, columns = append(all, line[at:i]), i, 0
		}
		_, n := utf8.DecodeRuneInString(line[i:])
		i, columns = i+n, columns+1
	}
	return append(all, line[at:])
}

// drawTerminal returns an SVG of lines with the colours of a terminal. Commands appear one after the other, their outputs a moment later.
func drawTerminal(unwrapped []string) string {
	const wide, high, margin = 7.8, 18, 14
	columns := 0
	var lines []string
	for _, l := range unwrapped {
		lines = append(lines, wrapTerminal(l)...)
	}
	for _, l := range lines {
		columns = max(columns, utf8.RuneCountInString(colour.ReplaceAllString(l, "")))
	}
	w, h := float64(columns)*wide+2*margin, len(lines)*high+2*margin
	var b strings.Builder
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %d\" width=\"%.0f\" height=\"%d\">\n", w, h, w, h)
	b.WriteString("<style>text{font:13px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#d4d4d4;white-space:pre}" +
		".b{font-weight:bold;fill:#fff}.r{fill:#f47067}.g{fill:#6bc46d}.y{fill:#daaa3f}.m{fill:#dcbdfb}.c{fill:#76e3ea}" +
		"@keyframes a{from{opacity:0}}text{animation:a .2s both}@media(prefers-reduced-motion:reduce){text{animation:none}}</style>\n")
	b.WriteString("<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#1e2228\"/>\n")
	seconds := 0.0
	for i, l := range lines {
		if l == "" {
			seconds += 2.5 // time to read the output
			continue
		}
		open := false
		close := func() {
			if open {
				b.WriteString("</tspan>")
			}
			open = false
		}
		// The length keeps columns in their places, whatever font there is.
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" textLength=\"%.1f\" style=\"animation-delay:%.1fs\">", margin, margin+i*high+13,
			float64(utf8.RuneCountInString(colour.ReplaceAllString(l, "")))*wide, seconds)
		if strings.HasPrefix(l, "\x1b[1m$ ") {
			seconds += 0.7
		}
		for l != "" {
			at := colour.FindStringSubmatchIndex(l)
			if at == nil {
				at = []int{len(l), len(l), len(l), len(l)}
			}
			b.WriteString(html.EscapeString(l[:at[0]]))
			if class, ok := colours[l[at[2]:at[3]]]; at[0] < at[1] {
				close()
				if open = ok; ok {
					fmt.Fprintf(&b, "<tspan class=\"%s\">", class)
				}
			}
			l = l[at[1]:]
		}
		close()
		b.WriteString("</text>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// TestBadges compares the badges of the README with go.mod and the licence. Run it with -update to write them.
func TestBadges(t *testing.T) {
	for name, b := range map[string]struct {
		label, file, line string // line has the value in its group
	}{
		"go":      {"Go", "go.mod", `(?m)^go (\d+\.\d+)`},
		"licence": {"licence", "packaging/copyright", `(?m)^Files: \*\n(?:.+\n)*?License: (\S+)$`},
	} {
		data, err := os.ReadFile("../../" + b.file)
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(b.line).FindSubmatch(data)
		if m == nil {
			t.Errorf("%s does not say the %s", b.file, b.label)
			continue
		}
		path, got := "../../docs/images/"+name+".svg", report.DrawBadge(b.label, string(m[1]), report.Blue)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(want) != got {
			t.Errorf("%s is not what %s says, run: go test ./cmd/btfgen -run TestBadges -update", path, b.file)
		}
	}
}

// TestForReadmes compares the minima, table and badge in docs/check.md with the output of check.
func TestForReadmes(t *testing.T) {
	slow.Skip(t)
	r := readerIn(t, map[string]string{
		"corpus": "../../testdata/vmlinux", "tracer.bpf.o": "../../testdata/bpf/tool.bpfel.o", "exec.bpf.o": pageObject,
	})
	run := func(format, objects string) string {
		r.do("btfgen check --btf corpus -f "+format+" -o out "+objects, statusOK)
		return string(r.read("out"))
	}
	page, err := os.ReadFile("../../docs/check.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	table := regexp.MustCompile(`(?m)^\| distribution \|.*\n(?:\|.*\n)*`)
	got := map[*regexp.Regexp]string{
		table: run("table", "tracer.bpf.o exec.bpf.o"),
		regexp.MustCompile(`(?m)^tracer\.bpf\.o: .*\n(?:.+: .*\n)*`): run("min-kernel", "tracer.bpf.o exec.bpf.o"),
	}
	for block, want := range got {
		if found := block.FindString(text); found == "" || !*update && found != want {
			t.Errorf("docs/check.md has\n%s\nand btfgen writes\n%s\nrun: go test ./cmd/btfgen -run TestForReadmes -update", found, want)
		} else {
			text = strings.Replace(text, found, want, 1)
		}
	}
	const picture = "../../docs/images/linux.svg"
	badge := run("badge", "tracer.bpf.o")
	if *update {
		for path, content := range map[string]string{picture: badge, "../../docs/check.md": text} {
			if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	if have, err := os.ReadFile(picture); err != nil || string(have) != badge {
		t.Errorf("%s is not what btfgen writes, run: go test ./cmd/btfgen -run TestForReadmes -update (%v)", picture, err)
	}
}
