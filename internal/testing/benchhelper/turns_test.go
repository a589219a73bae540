// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// plan returns the words of steps in the form that parsePlan reads.
func plan(steps ...[]string) string {
	var b strings.Builder
	for _, words := range steps {
		b.WriteString(strings.Join(words, "\x00") + "\x00\x00")
	}
	return b.String()
}

func TestParsePlan(t *testing.T) {
	got, err := parsePlan(plan([]string{"0", "ours", "a", "--btf", "a b"}, []string{"2", "drop", "x"}))
	want := []step{{0, "ours", []string{"a", "--btf", "a b"}}, {2, "drop", []string{"x"}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := parsePlan(""); got != nil || err != nil {
		t.Errorf("an empty plan: got %v, %v", got, err)
	}
	for text, want := range map[string]string{
		plan([]string{"0"}):                "want a number of rounds and a kind",
		plan([]string{"x", "drop", "y"}):   "invalid syntax",
		plan([]string{"0", "fly", "y"}):    "unknown",
		plan([]string{"0", "copy", "x"}):   "too few arguments",
		"0\x00drop\x00x":                   "has no end",
		plan([]string{"0", "drop"}) + "0":  "too few arguments",
		plan([]string{"0", "run", "side"}): "too few arguments",
	} {
		if _, err := parsePlan(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

// TestTurns checks which programs run in which order, and what is counted of them.
func TestTurns(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	program := func(name, script string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, fmt.Appendf(nil, "#!/bin/sh\necho %s $* >>%s\n%s\n", name, log, script), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	b := turns{program: program("now", "echo x >>$2"), before: program("old", "exit 3"), out: filepath.Join(dir, "out"), measured: measured{}}
	if err := os.MkdirAll(filepath.Join(b.out, "before"), 0o755); err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "list")
	if err := os.WriteFile(list, []byte("1\n2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	steps, err := parsePlan(plan(
		[]string{"0", "copy", list, "a"},
		[]string{"0", "ours", "side", "-o", b.out + "/a"},
		[]string{"1", "run", "other", program("other", "exit 1")},
		[]string{"1", "each", "all", list, "1", program("each", `[ "$1" = 1 ]`), "{}"},
		[]string{"2", "drop", "a"},
	))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.rounds(3, steps); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.ReplaceAll(string(data), b.out, "OUT")
	if want := `now -o OUT/a
old -o OUT/before/a
other
each 1
each 2
old -o OUT/before/a
now -o OUT/a
now -o OUT/a
old -o OUT/before/a
`; got != want {
		t.Errorf("ran:\n%swant:\n%s", got, want)
	}
	for path, want := range map[string]string{"a": "1\n2\nx\n", "before/a": "1\n2\n"} {
		if data, err := os.ReadFile(filepath.Join(b.out, path)); string(data) != want {
			t.Errorf("%s: got %q, %v", path, data, err)
		}
	}
	for _, c := range []struct {
		name string
		list []usage
		want string
	}{
		{"now", b.measured["side"].Now, "[1 1 1] [0 0 0]"},
		{"before", b.measured["side"].Before, "[1 1 1] [0 0 0]"},
		{"other", b.measured["other"].Now, "[1] [1]"},
		{"each", b.measured["all"].Now, "[2] [1]"},
	} {
		if got := counts(t, c.list); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
	b.program = filepath.Join(dir, "none")
	if err := b.rounds(1, steps); err == nil {
		t.Error("no error for a program that does not exist")
	}
}

// counts returns the numbers of runs and of failed runs. It checks that each measurement has a cost.
func counts(t *testing.T, list []usage) string {
	var runs, failed []int
	for _, u := range list {
		if u.CPU <= 0 || u.Wall <= 0 || u.MaxRSS <= 0 {
			t.Errorf("got %+v", u)
		}
		runs, failed = append(runs, u.Runs), append(failed, u.Failed)
	}
	return fmt.Sprint(runs, failed)
}
