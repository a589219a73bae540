// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/urfave/cli/v2"
	"go.yaml.in/yaml/v3"

	"github.com/btfgen/btfgen/internal/testing/raceflag"
)

const configSchema = "../../docs/schema/btfgen.yaml.json"

// object is a JSON object.
type object = map[string]any

// schemaOf describes btfgen.yaml for editors.
func schemaOf(app *cli.App) object {
	value := func(c *cli.Command, k key) object {
		v := valueOf(k)
		if k.flag != nil {
			v["description"] = describe(k.flag).usage
		}
		return v
	}
	var section func(c *cli.Command, description string, known []key) object
	section = func(c *cli.Command, description string, known []key) object {
		all := object{}
		for _, k := range known {
			all[k.name] = value(c, k)
		}
		for _, sub := range c.Subcommands {
			if isGroup(sub) || keys(sub) != nil {
				all[sub.Name] = section(sub, sub.Usage, keys(sub))
			}
		}
		return object{"type": []string{"object", "null"}, "description": description, "additionalProperties": false, "properties": all}
	}
	top := section(root(app), "options and arguments of all commands, and of each command", commonKeys(root(app)))
	top["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	top["$id"] = "https://github.com/btfgen/btfgen/blob/main/docs/schema/btfgen.yaml.json"
	top["title"] = "btfgen.yaml"
	return top
}

func valueOf(k key) object {
	switch f := k.flag.(type) {
	case *cli.BoolFlag:
		return object{"type": "boolean"}
	case *cli.GenericFlag:
		if w := f.Value.(*word); w.words != nil {
			return object{"enum": w.words}
		}
		return object{"type": "integer", "minimum": 1}
	}
	if k.repeats {
		return object{"type": []string{"string", "number", "array"}, "items": object{"type": []string{"string", "number"}}}
	}
	return object{"type": []string{"string", "number"}}
}

// TestConfigSchema compares the schema with the commands. Run it with -update to write the file.
func TestConfigSchema(t *testing.T) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(schemaOf(newApp(io.Discard, io.Discard))); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(configSchema, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(configSchema)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Errorf("%s is not up to date, run: go test ./cmd/btfgen -run TestConfigSchema -update\n%s", configSchema, d)
	}
}

// The schema and the program accept the same files.
func TestConfigAgree(t *testing.T) {
	raceflag.SkipSerial(t)
	compiler := jsonschema.NewCompiler()
	schema, err := compiler.Compile(configSchema)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"":                                   true,
		"btf: kernels/":                      true,
		"btf: [a, b]\njobs: 3":               true,
		"select: [5.10, debian]":             true,
		"generate:":                          true,
		"generate: {output: x, json: true}":  true,
		"archive: {lookup: {archive: x}}":    true,
		"corpus: {list: {btf: [a]}}":         true,
		"check: {fail-on: [failing]}":        true,
		"bft: x":                             false,
		"output: x":                          false,
		"config: x":                          false,
		"help: true":                         false,
		"man: {}":                            false,
		"generate: {archive: x}":             false,
		"generate: {output: [a]}":            false,
		"generate: {json: many}":             false,
		"generate: 3":                        false,
		"archive: {output: x}":               false,
		"archive: {lookup: {archives: [x]}}": false,
		"jobs: many":                         false,
		"jobs: 0":                            false,
		"select: {a: b}":                     false,
		"select: [[a]]":                      false,
		"color: true":                        false,
		"color: some":                        false,
		"- a":                                false,
	} {
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		_, err := readText(t, text, "generate")
		if bySchema := schema.Validate(v); (bySchema == nil) != want || (err == nil) != want {
			t.Errorf("%q: want %v; schema: %v, program: %v", text, want, bySchema, err)
		}
	}
}

// A name means the same for all commands, so that it can apply to all of them.
func TestConfigKeys(t *testing.T) {
	known := make(map[string]key)
	for _, p := range topics(newApp(io.Discard, io.Discard)) {
		for _, k := range keys(p.Command) {
			of := k
			of.flag = nil
			if old, ok := known[k.name]; ok && old != of {
				t.Errorf("%s: %+v for %s, %+v for another command", k.name, of, p.name, old)
			}
			known[k.name] = of
		}
	}
	for _, name := range []string{"btf", "select", "objects", "archive", "output", "require", "jobs", "json"} {
		if _, ok := known[name]; !ok {
			t.Errorf("%s is missing in %v", name, slices.Sorted(maps.Keys(known)))
		}
	}
	for _, name := range []string{"config", "help"} {
		if _, ok := known[name]; ok {
			t.Errorf("%s is a key", name)
		}
	}
}

// readText reads a file named c with some text for a command.
func readText(t testing.TB, text, command string) (map[string][]option, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c")
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	l := &commandLine{command: root(newApp(io.Discard, io.Discard))}
	top := l.command
	l.descend(strings.Fields(command))
	values, err := readConfig(path, true, top, l)
	dir := filepath.Dir(path)
	for _, all := range values {
		for i := range all {
			all[i].value, all[i].from = strings.ReplaceAll(all[i].value, dir, "DIR"), strings.TrimPrefix(all[i].from, path+":")
		}
	}
	if err != nil {
		err = errors.New(strings.ReplaceAll(err.Error(), dir+"/", ""))
	}
	return values, err
}

func TestConfigValues(t *testing.T) {
	const text = `
# comments are fine
btf: kernels/
select: [debian>=11, "x86_64", 5.10, 2024-01-01]
jobs: 4
json: false
color: always
objects: [a.o, x86_64=sub/b.o, '-', /abs/c.o, odd=name.o]
generate:
  output: out.btfa
  jobs: 2
  select: []
archive:
  list:
  convert: {output: -, archives: part.btfa}
`
	for _, tt := range []struct {
		command string
		want    string
	}{
		{"generate", "btf=DIR/kernels/ @3:6; color=always @7:8; jobs=2 @11:9; json=false @6:7; objects=DIR/a.o @8:11; objects=x86_64=DIR/sub/b.o @8:16; " +
			"objects=- @8:32; objects=/abs/c.o @8:37; objects=DIR/odd=name.o @8:47; output=DIR/out.btfa @10:11; select= none"},
		{"archive list", "color=always @7:8; json=false @6:7"},
		{"archive convert", "archives=DIR/part.btfa @15:34; color=always @7:8; json=false @6:7; output=- @15:21; select=debian>=11 @4:10; select=x86_64 @4:22; select=5.10 @4:32; select=2024-01-01 @4:38"},
	} {
		values, err := readText(t, text, tt.command)
		if err != nil {
			t.Fatal(err)
		}
		l := &commandLine{command: root(newApp(io.Discard, io.Discard))}
		l.descend(strings.Fields(tt.command))
		var got []string
		for _, k := range keys(l.command) {
			v, ok := values[k.name]
			if ok && len(v) == 0 {
				got = append(got, k.name+"= none")
			}
			for _, v := range v {
				got = append(got, k.name+"="+v.value+" @"+v.from)
			}
		}
		slices.SortStableFunc(got, func(a, b string) int { return strings.Compare(a[:strings.Index(a, "=")], b[:strings.Index(b, "=")]) })
		if text := strings.Join(got, "; "); text != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.command, text, tt.want)
		}
	}
}

// Values are the texts of the file: 5.10 keeps its zero.
func TestConfigTexts(t *testing.T) {
	values, err := readText(t, "select: [debian>=11, 5.10, 0x10, 1e3, 2024-01-01, yes, \"a\\nb\"]", "generate")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range values["select"] {
		got = append(got, v.value)
	}
	if want := "debian>=11|5.10|0x10|1e3|2024-01-01|yes|a\nb"; strings.Join(got, "|") != want {
		t.Errorf("%q, want %q", strings.Join(got, "|"), want)
	}
}

func TestConfigErrors(t *testing.T) {
	raceflag.SkipSerial(t)
	for _, tt := range []struct{ text, want string }{
		{"bft: x", `c:1:1: unknown key "bft" (did you mean btf?)`},
		{"nonsense: x", `c:1:1: unknown key "nonsense"`},
		{"generate:\n  ouput: x", `c:2:3: unknown key "ouput" (did you mean output?)`},
		{"output: x", `c:1:1: unknown key "output"`},
		{"archive: {lits: {}}", `c:1:11: unknown key "lits" (did you mean list?)`},
		{"archive: {archive: x}", `c:1:11: unknown key "archive"`},
		{"archive: {list: {archive: [x]}}", `c:1:27: archive: want one value`},
		{"jobs: many", `c:1:7: jobs: want a number of 1 or more`},
		{"jobs: 1.5", `c:1:7: jobs: want a number of 1 or more`},
		{"jobs: 99999999999999999999", `c:1:7: jobs: want a number of 1 or more`},
		{"jobs: [1]", `c:1:7: jobs: want one value`},
		{"json: yes", `c:1:7: json: want true or false`},
		{"color: true", `c:1:8: color: want auto, always or never`},
		{"color:", `c:1:7: color: want one value`},
		{"color: {a: b}", `c:1:8: color: want one value`},
		{"select: [a, [b]]", `c:1:13: select: want one value`},
		{"select: {a: b}", `c:1:9: select: want one value`},
		{"jobs: 1\njobs: 2", `c:2:1: "jobs" is already in line 1`},
		{"generate: {jobs: 1, jobs: 2}", `c:1:21: "jobs" is already in line 1`},
		{"generate: {}\ngenerate: {}", `c:2:1: "generate" is already in line 1`},
		{"generate: x", `c:1:11: want keys with values`},
		{"generate: [a]", `c:1:11: want keys with values`},
		{"- a", `c:1:1: want keys with values`},
		{"[a]: b", `c:1:1: a key must be a word`},
		{"select: &a x\nexclude: *a", `c:2:10: exclude: want one value`},
		{"generate: &a {}\narchive: *a", "c:2:10: want keys with values"},
		{"? &jobs jobs\n: 1\n? *jobs\n: 2", "c:3:3: a key must be a word"},
		{"generate: {<<: {jobs: 1}}", `c:1:12: unknown key`},
		{"generate:\n  root x 0 0 secret: 1", "c:2:3: unknown key"},
		{"secret/token: x\n\"secret/token\": y", "c:1:1: unknown key\nc:2:1: a key is already in line 1"},
		{strings.Repeat("a", 41) + ": x", "c:1:1: unknown key"},
		{"jobs: 1\n---\njobs: 2", "c:2: a second document"},
		{"a:\n\tb", "c:2: found character that cannot start any token"},
		{"a: [", "c:1: did not find expected node content"},
		{"a: *b", "c: unknown anchor"},
		{"\x00", "c: control characters are not allowed"},
		{strings.Repeat("[", 100_000), "c: exceeded max depth of 10000"},
		{strings.Repeat("#", 1<<18+1), "c: too large: more than 262144 bytes"},
		{"bft: 1\nfound: 2", "c:1:1: unknown key \"bft\" (did you mean btf?)\nc:2:1: unknown key \"found\""},
	} {
		values, err := readText(t, tt.text, "generate")
		if err == nil {
			t.Errorf("%.40q: read as %+v", tt.text, values)
		} else if err.Error() != tt.want {
			t.Errorf("%.40q:\n got %s\nwant %s", tt.text, err, tt.want)
		}
	}
	for _, text := range []string{"", "# nothing", "---", "generate:", "generate: ~\narchive: {list: }"} {
		if values, err := readText(t, text, "generate"); err != nil || len(values) > 0 {
			t.Errorf("%q: %v", text, err)
		}
	}
	top := root(newApp(io.Discard, io.Discard))
	if _, err := readConfig(t.TempDir(), true, top, &commandLine{command: top.Subcommands[0]}); err == nil || !strings.HasSuffix(err.Error(), ": not a regular file") {
		t.Errorf("a directory: %v", err)
	}
}

// A file is an error with its name, or has values with positions.
func FuzzConfig(f *testing.F) {
	f.Add("btf: kernels/\ngenerate: {output: x, jobs: 3}\n")
	f.Add("select: [a, 5.10]\narchive:\n  list: {archive: x}\n")
	f.Add("a: &a [*a]\n")
	f.Add("? [a]\n: - b\n")
	f.Fuzz(func(t *testing.T, text string) {
		values, err := readText(t, text, "generate")
		if err != nil && !strings.HasPrefix(err.Error(), "c:") {
			t.Errorf("%q", err)
		}
		for name, all := range values {
			for _, v := range all {
				if v.from == "" || name == "json" && err == nil && v.value == "" {
					t.Errorf("%s: %+v", name, v)
				}
			}
		}
	})
}

// TestConfigPage runs the example of docs/cli.md.
func TestConfigPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	page, _, _ = bytes.Cut(page, []byte(generatedPart))
	_, page, _ = bytes.Cut(page, []byte("\n## btfgen.yaml\n"))
	m := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(page)
	if m == nil {
		t.Fatal("no example on the page")
	}
	td, err := filepath.Abs("../../testdata")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile(configFile, m[1], 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll("build", 0o777); err != nil {
		t.Fatal(err)
	}
	for to, from := range map[string]string{
		"kernels":            "vmlinux",
		"build/tracer_x86.o": "bpf/tcplife.bpfel.o",
		"build/probes.o":     "bpf/execsnoop.bpfel.o",
	} {
		if err := os.Symlink(filepath.Join(td, from), to); err != nil {
			t.Fatal(err)
		}
	}
	commands := regexp.MustCompile("(?m)^    btfgen (.*)$").FindAllSubmatch(page, -1)
	if len(commands) < 4 {
		t.Errorf("%d commands on the page", len(commands))
	}
	for _, c := range commands {
		var stdout, stderr bytes.Buffer
		if s := run(t.Context(), strings.Fields(string(c[1])), &stdout, &stderr); s != statusOK {
			t.Errorf("btfgen %s: status %d\n%s%s", c[1], s, &stdout, &stderr)
		}
	}
}
