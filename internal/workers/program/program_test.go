// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/btfgen/btfgen/internal/limits"
)

// fake puts scripts in place of all programs.
func fake(t *testing.T, script string) {
	t.Helper()
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("needs /bin/sh")
	}
	dir := t.TempDir()
	for _, name := range Names() {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// TestWords starts every program with words from outside: those that could be options are refused, and the others come after "--".
func TestWords(t *testing.T) {
	ran := filepath.Join(t.TempDir(), "ran")
	fake(t, `: >`+ran+`; for a; do printf '[%s]' "$a"; done`)
	for _, name := range Names() {
		for word, want := range map[string]string{
			"-cevil.conf":        "would be an option",
			"--config=evil.conf": "would be an option",
			"-":                  "would be an option",
			"--":                 "would be an option",
			"":                   "a word is empty",
			"a\nb":               "control characters",
			"a\x00b":             "control characters",
			"a\x1b[31m":          "control characters",
			"a\xff":              "control characters",
			strings.Repeat("a", limits.ProgramWord+1): "too large",
		} {
			_, err := Run(t.Context(), &Command{Name: name, Options: []string{"-x"}, Words: []string{"good", word}})
			if err == nil || !strings.HasPrefix(err.Error(), name+": ") || !strings.Contains(err.Error(), want) {
				t.Errorf("%s %.20q: %v, want %s", name, word, err, want)
			}
		}
		if _, err := os.Stat(ran); err == nil {
			t.Fatalf("%s ran", name)
		}
		words := []string{"kernel-core*", "/k ey.gpg", "$(touch x)", "`x`", ";x", "a=-x", "*", strings.Repeat("a", limits.ProgramWord)}
		got, err := Run(t.Context(), &Command{Name: name, Options: []string{"-x"}, Words: words})
		if want := "[-x][--][" + strings.Join(words, "][") + "]"; err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", name, got, err, want)
		}
		os.Remove(ran)
	}
	for _, name := range []string{"sh", "/bin/sh", "./apt-get", "../apt-get", ""} {
		if _, err := Run(t.Context(), &Command{Name: name}); err == nil || !strings.Contains(err.Error(), "not a program that btfgen runs") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestFound wants a program that exists in the working directory only not to be found, whatever PATH says.
func TestFound(t *testing.T) {
	fake(t, "")
	dir, _, _ := strings.Cut(os.Getenv("PATH"), ":")
	t.Chdir(dir)
	for path, want := range map[string]string{
		".":        "found in the working directory only",
		"":         "needs apt-get (package apt)",
		"/nowhere": "needs apt-get (package apt)",
	} {
		t.Setenv("PATH", path)
		if found, err := Find("apt-get"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("PATH=%s: %s, %v, want %s", path, found, err, want)
		}
	}
}

// TestBeside prefers a program of btfgen's own in the folder of the executable, and no other program.
func TestBeside(t *testing.T) {
	fake(t, "echo in PATH")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"btfgen-registry": "beside", "dnf": "in PATH"} {
		path := filepath.Join(filepath.Dir(self), name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\necho beside\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(path)
		if got, err := Run(t.Context(), &Command{Name: name}); err != nil || strings.TrimSpace(got) != want {
			t.Errorf("%s: %s, %v, want %s", name, got, err, want)
		}
	}
	t.Setenv("PATH", "/nowhere")
	os.Remove(filepath.Join(filepath.Dir(self), "btfgen-registry"))
	if _, err := Find("btfgen-registry"); err == nil || !strings.Contains(err.Error(), "go install github.com/btfgen/btfgen/cmd/btfgen-registry@latest") {
		t.Error(err)
	}
}

// TestEnvironment checks which variables of the environment programs get.
func TestEnvironment(t *testing.T) {
	fake(t, "env")
	for _, v := range []string{"GITHUB_TOKEN", "DEBUGINFOD_URLS", "LC_ALL", "https_proxy", "NO_PROXY", "APT_CONFIG", "TMPDIR", "BASH_ENV", "LD_PRELOAD",
		"DOCKER_CONFIG", "AWS_PROFILE", "MY_AWS_KEY"} {
		t.Setenv(v, "x")
	}
	for name, want := range map[string][]string{
		"apt-get":            {"APT_CONFIG", "LC_ALL", "MORE", "NO_PROXY", "TMPDIR", "https_proxy"},
		"pahole":             {"LC_ALL", "MORE"},
		"qemu-system-x86_64": {"LC_ALL", "MORE", "TMPDIR"},
		"btfgen-registry":    {"AWS_PROFILE", "DOCKER_CONFIG", "LC_ALL", "MORE", "NO_PROXY", "TMPDIR", "https_proxy"},
	} {
		out, err := Run(t.Context(), &Command{Name: name, Env: []string{"MORE=y"}})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(out) {
			v, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			if value == "x" || value == "y" || v == "LC_ALL" && value == "C" {
				got = append(got, v)
			}
		}
		slices.Sort(got)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// TestRun checks output, errors, and the ends of programs.
func TestRun(t *testing.T) {
	fake(t, `case "$1" in
out) echo out; echo said >&2;;
fails) echo first >&2; echo "E: broken" >&2; echo last >&2; exit 3;;
silent) exit 3;;
much) exec cat /dev/zero;;
stays) echo >&3; exec sleep 100;;
group) read -r p c s pp g rest </proc/$$/stat; echo $g;;
esac`)
	for word, want := range map[string]string{"fails": "dnf: E: broken", "silent": "dnf: exit status 3", "much": "dnf: too large: more than"} {
		if _, err := Run(t.Context(), &Command{Name: "dnf", Options: []string{word}}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", word, err, want)
		}
	}
	if out, err := Run(t.Context(), &Command{Name: "dnf", Options: []string{"out"}}); out != "out\n" || err != nil {
		t.Errorf("%q, %v", out, err)
	}
	for _, name := range []string{"dnf", "pahole"} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			r.Read(make([]byte, 1))
			cancel()
		}()
		start := time.Now()
		if _, err := Run(ctx, &Command{Name: name, Options: []string{"stays"}, Files: []*os.File{w}}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v after %v", name, err, time.Since(start))
		}
		r.Close()
		w.Close()
	}
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Log("skipped: process groups: needs /proc")
		return
	}
	self, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := Run(t.Context(), &Command{Name: "dnf", Options: []string{"group"}}); err != nil || strings.TrimSpace(out) == strings.Fields(string(self))[4] {
		t.Errorf("a program gets the signals of btfgen's terminal: group %s, %v", out, err)
	}
}

// TestPage holds the list of programs in SECURITY.md against the table.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, ok := strings.Cut(string(page), "btfgen\nruns these programs:\n\n")
	list, _, end := strings.Cut(list, "\n\n")
	if !ok || !end {
		t.Fatal("no list of programs")
	}
	var got []string
	for _, item := range regexp.MustCompile("(?m)^- .*:").FindAllString(list, -1) {
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(item, -1) {
			got = append(got, m[1])
		}
	}
	slices.Sort(got)
	if d := cmp.Diff(Names(), got); d != "" {
		t.Errorf("SECURITY.md (-table +page):\n%s", d)
	}
}
