// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var commands = []Command{
	{[]string{"generate"}, []Key{
		{"btf", Text, true, true}, {"select", Text, true, false}, {"output", Text, false, true}, {"jobs", Number, false, false},
		{"json", Bool, false, false}, {"padding", Text, false, false}, {"objects", Text, true, true},
	}},
	{[]string{"archive", "list"}, []Key{{"archive", Text, false, true}, {"json", Bool, false, false}}},
	{[]string{"archive", "merge"}, []Key{{"archives", Text, true, true}, {"output", Text, false, true}}},
}

func write(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestValues(t *testing.T) {
	path := write(t, "btfgen.yaml", `
# comments are fine
btf: kernels/
select: [debian>=11, "x86_64", 5.10, 2024-01-01]
jobs: 4
json: false
padding: explicit
objects: [a.o, x86_64=sub/b.o, '@list', '-', /abs/c.o, odd=name.o]
generate:
  output: out.btfa
  jobs: 2
  select: []
archive:
  list:
  merge: {output: -, archives: part.btfa}
`)
	f, err := Read(path, commands)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(path)
	for _, tt := range []struct {
		command string
		want    string
	}{
		{"generate", "btf=DIR/kernels/ @3:6; jobs=2 @11:9; json=false @6:7; objects=DIR/a.o @8:11; objects=x86_64=DIR/sub/b.o @8:16; " +
			"objects=@DIR/list @8:32; objects=- @8:41; objects=/abs/c.o @8:46; objects=DIR/odd=name.o @8:56; output=DIR/out.btfa @10:11; padding=explicit @7:10; select= none"},
		{"archive list", "json=false @6:7"},
		{"archive merge", "archives=DIR/part.btfa @15:32; output=- @15:19"},
		{"nothing", ""},
	} {
		var got []string
		values := f.Values(strings.Fields(tt.command)...)
		for _, k := range []string{"archive", "archives", "btf", "jobs", "json", "objects", "output", "padding", "select"} {
			v, ok := values[k]
			if ok && len(v) == 0 {
				got = append(got, k+"= none")
			}
			for _, v := range v {
				got = append(got, fmt.Sprintf("%s=%s @%s", k, v.Text, strings.TrimPrefix(v.Pos, path+":")))
			}
		}
		if text := strings.ReplaceAll(strings.Join(got, "; "), dir, "DIR"); text != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.command, text, tt.want)
		}
	}
}

// What a list has is what stands in it, as texts: 5.10 keeps its zero.
func TestTexts(t *testing.T) {
	f, err := Read(write(t, "c", "select: [debian>=11, 5.10, 0x10, 1e3, 2024-01-01, |\n  x,\n \"a\\nb\"]"), commands)
	if err == nil {
		t.Fatalf("a block in a list: %+v", f.Values("generate"))
	}
	f, err = Read(write(t, "c", "select: [debian>=11, 5.10, 0x10, 1e3, 2024-01-01, yes, \"a\\nb\"]"), commands)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range f.Values("generate")["select"] {
		got = append(got, v.Text)
	}
	if want := "debian>=11|5.10|0x10|1e3|2024-01-01|yes|a\nb"; strings.Join(got, "|") != want {
		t.Errorf("%q, want %q", strings.Join(got, "|"), want)
	}
}

func TestErrors(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"bft: x", `c:1:1: unknown key "bft" (did you mean btf?)`},
		{"nonsense: x", `c:1:1: unknown key "nonsense"`},
		{"generate:\n  ouput: x", `c:2:3: unknown key "ouput" (did you mean output?)`},
		{"output: x", `c:1:1: "output" belongs to a command, as in "generate: {output: …}"`},
		{"archive: {lits: {}}", `c:1:11: unknown key "lits" (did you mean list?)`},
		{"archive: {archive: x}", `c:1:11: unknown key "archive"`},
		{"archive: {list: {archive: [x]}}", `c:1:27: archive: want one value, a text`},
		{"jobs: many", `c:1:7: jobs: want a whole number`},
		{"jobs: 1.5", `c:1:7: jobs: want a whole number`},
		{"jobs: 99999999999999999999", `c:1:7: jobs: want a whole number`},
		{"jobs: [1]", `c:1:7: jobs: want one value, a whole number`},
		{"json: yes", `c:1:7: json: want true or false`},
		{"json: 1", `c:1:7: json: want true or false`},
		{"padding: true", `c:1:10: padding: want a text: put "true" in quotes`},
		{"padding:", `c:1:9: padding: want a text: put "" in quotes`},
		{"padding: {a: b}", `c:1:10: padding: want a text`},
		{"select: [a, [b]]", `c:1:13: select: want one value, a text`},
		{"select: {a: b}", `c:1:9: select: want a text`},
		{"jobs: 1\njobs: 2", `c:2:1: "jobs" stands in line 1 already`},
		{"generate: {jobs: 1, jobs: 2}", `c:1:21: "jobs" stands in line 1 already`},
		{"generate: {}\ngenerate: {}", `c:2:1: "generate" stands in line 1 already`},
		{"generate: x", `c:1:11: want keys with values`},
		{"generate: [a]", `c:1:11: want keys with values`},
		{"- a", `c:1:1: want keys with values`},
		{"[a]: b", `c:1:1: a key has to be a word`},
		{"select: &a [x]", `c:1:9: anchors and aliases are not taken`},
		{"select: [&a x]", `c:1:10: anchors and aliases are not taken`},
		{"&a jobs: 1", `c:1:1: anchors and aliases are not taken`},
		{"generate: &a {}\narchive: *a", "c:1:11: anchors and aliases are not taken\nc:2:10: anchors and aliases are not taken"},
		{"generate: {<<: {jobs: 1}}", `c:1:12: unknown key "<<"`},
		{"jobs: !!int 3", `c:1:7: tags are not taken: !!int`},
		{"select: !x [a]", `c:1:9: tags are not taken: !x`},
		{"jobs: 1\n---\njobs: 2", "c:2: a second document"},
		{"a:\n\tb", "c:2: found character that cannot start any token"},
		{"a: [", "c:1: did not find expected node content"},
		{"a: *b", "c: unknown anchor 'b' referenced"},
		{"\x00", "c: control characters are not allowed"},
		{strings.Repeat("[", 100_000), "c: exceeded max depth of 10000"},
		{strings.Repeat("#", 1<<18+1), "c: larger than the limit of 256 KiB"},
		{"bft: 1\nlist: 2", "c:1:1: unknown key \"bft\" (did you mean btf?)\nc:2:1: unknown key \"list\""},
	} {
		path := write(t, "c", tt.text)
		f, err := Read(path, commands)
		if err == nil {
			t.Errorf("%.40q: read as %+v", tt.text, f)
			continue
		}
		if got := strings.ReplaceAll(err.Error(), filepath.Dir(path)+"/", ""); got != tt.want {
			t.Errorf("%.40q:\n got %s\nwant %s", tt.text, got, tt.want)
		}
	}
	for _, text := range []string{"", "# nothing", "---", "generate:", "generate: ~\narchive: {list: }"} {
		if f, err := Read(write(t, "c", text), commands); err != nil || len(f.Values("generate")) > 0 {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := Read(t.TempDir(), commands); err == nil || !strings.HasSuffix(err.Error(), ": not a regular file") {
		t.Errorf("a directory: %v", err)
	}
	if _, err := Read("nowhere/c", commands); err == nil || err.Error() != "nowhere/c: no such file or directory" {
		t.Errorf("nowhere: %v", err)
	}
}

// FuzzRead holds that a file is either refused with its name, or has values of the kinds that were asked for.
func FuzzRead(f *testing.F) {
	f.Add("btf: kernels/\ngenerate: {output: x, jobs: 3}\n")
	f.Add("select: [a, 5.10]\narchive:\n  list: {archive: x}\n")
	f.Add("a: &a [*a]\n")
	f.Add("? [a]\n: - b\n")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(dir, "c")
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		file, err := Read(path, commands)
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if file != nil || !strings.HasPrefix(line, path+":") && !strings.Contains(err.Error(), path+":") {
					t.Errorf("%q", err)
				}
			}
			return
		}
		for name, values := range file.Values("generate") {
			for _, v := range values {
				if !strings.HasPrefix(v.Pos, path+":") || name == "json" && v.Text == "" {
					t.Errorf("%s: %+v", name, v)
				}
			}
		}
	})
}
