// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/raceflag"
)

// TestMan checks that each command has a page with all of its options, and that formatters print no warnings.
func TestMan(t *testing.T) {
	raceflag.SkipSerial(t)
	dir := t.TempDir()
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	var stderr bytes.Buffer
	if s := run(t.Context(), []string{"man", "-o", dir}, io.Discard, &stderr); s != statusOK {
		t.Fatalf("exit status %d: %s", s, &stderr)
	}
	files, err := filepath.Glob(dir + "/*")
	if err != nil {
		t.Fatal(err)
	}
	app := newApp(io.Discard, io.Discard)
	pages := topics(app)
	if len(files) != len(pages) || len(pages) < 15 {
		t.Errorf("%d files of %d pages", len(files), len(pages))
	}
	man, mandoc := lookPath("man"), lookPath("mandoc")
	for _, p := range pages {
		file := filepath.Join(dir, manName(p.name)+".1")
		var alone bytes.Buffer
		args := append([]string{"man"}, strings.Fields(p.name)[1:]...)
		if s := run(t.Context(), args, &alone, &stderr); s != statusOK || alone.String() != p.roff(app, "2023-11-14") {
			t.Errorf("%s: exit status %d, another page than that of -o: %s", p.name, s, &stderr)
		}
		for line := range strings.Lines(alone.String()) {
			if strings.HasPrefix(line, "'") || regexp.MustCompile(`[^ -~\n]`).MatchString(line) {
				t.Errorf("%s: %q", p.name, line)
			}
		}
		if mandoc != "" {
			if out, err := exec.Command(mandoc, "-Tlint", "-Wwarning", file).CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", p.name, err, out)
			}
		}
		if man == "" {
			continue
		}
		// man, with a width that breaks no line.
		cmd := exec.Command(man, "--warnings=all", "-l", file)
		cmd.Env = append(cmd.Environ(), "MANWIDTH=3000", "MAN_KEEP_FORMATTING=", "LC_ALL=C.UTF-8", "MANPAGER=cat")
		var warnings bytes.Buffer
		cmd.Stderr = &warnings
		out, err := cmd.Output()
		if err != nil || warnings.Len() > 0 {
			t.Errorf("%s: %v\n%s", p.name, err, &warnings)
		}
		text := strings.Join(strings.Fields(string(out)), " ")
		want := []string{manName(p.name) + " - " + p.Usage, "2023-11-14"}
		for _, c := range p.Subcommands {
			want = append(want, c.Name+" "+c.Usage)
		}
		for _, o := range describeAll(p.Command) {
			want = append(want, o.typed+" "+o.usage)
		}
		if p.name == app.Name {
			for c, m := range meanings {
				want = append(want, string(c)+" "+strings.ReplaceAll(m, "`", ""))
			}
		} else if all := written(p.name); !isGroup(p.Command) && all[len(all)-1].title != "Examples" {
			t.Errorf("%s: no example", p.name)
		} else {
			want = append(want, all[len(all)-1].text)
		}
		for _, w := range want {
			if w = strings.Join(strings.Fields(w), " "); !strings.Contains(text, w) {
				t.Errorf("%s: %q is not in the page", p.name, w)
			}
		}
	}
	if man == "" || mandoc == "" {
		t.Skip("needs man and mandoc to look at the pages")
	}
}

func lookPath(program string) string {
	path, _ := exec.LookPath(program)
	return path
}

func TestRoff(t *testing.T) {
	for text, want := range map[string]string{
		"a - b":                `a \- b`,
		`'x' "y" \z ^~`:        `\(aqx\(aq \(dqy\(dq \ez \(ha\(ti`,
		"to `--fail-on`, that": `to \fB\-\-fail\-on\fR, that`,
		"NAME,…":               `NAME,\[u2026]`,
	} {
		if got := roffInline(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	got := roff("One\ntwo.\n\n.three\n\n- `a`: x\n\nFour:\n\n    few  words\n\n    .here\n\nEnd.")
	const want = "One\ntwo.\n.PP\n\\&.three\n.TP 8\n\\fBa\\fR\nx\n.PP\nFour:\n.PP\n.nf\n.RS 4\nfew  words\n.RE\n.fi\n.PP\n.nf\n.RS 4\n\\&.here\n.RE\n.fi\n.PP\nEnd.\n"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
