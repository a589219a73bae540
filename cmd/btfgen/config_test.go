// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
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

	"github.com/btfgen/btfgen/cmd/btfgen/config"
)

const configSchema = "../../docs/schema/btfgen.yaml.json"

// object is a JSON object.
type object = map[string]any

// schemaOf describes btfgen.yaml for editors, as package config reads it.
func schemaOf(app *cli.App) object {
	help := make(map[string]string) // by command and option
	var walk func(prefix string, among []*cli.Command)
	walk = func(prefix string, among []*cli.Command) {
		for _, c := range among {
			name := strings.TrimSpace(prefix + " " + c.Name)
			help[name] = c.Usage
			for _, f := range c.Flags {
				if o := describe(f); o != nil {
					help[name+" "+f.Names()[0]] = o.usage
				}
			}
			walk(name, c.Subcommands)
		}
	}
	walk("", app.Commands)
	commands := configurable(nil, app.Commands)
	top := section("the same options and arguments for all commands, and those of each command")
	properties := top["properties"].(object)
	for _, c := range commands {
		in := top
		for i, word := range c.Name {
			all := in["properties"].(object)
			if all[word] == nil {
				all[word] = section(help[strings.Join(c.Name[:i+1], " ")])
			}
			in = all[word].(object)
		}
		for _, k := range c.Keys {
			value := valueOf(k)
			if text := help[strings.Join(append(slices.Clone(c.Name), k.Name), " ")]; text != "" {
				value["description"] = text
			}
			in["properties"].(object)[k.Name] = value
			if properties[k.Name] == nil && (k.Repeats || !k.Path) {
				properties[k.Name] = value
			}
		}
	}
	top["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	top["$id"] = "https://github.com/btfgen/btfgen/blob/main/docs/schema/btfgen.yaml.json"
	top["title"] = "btfgen.yaml"
	return top
}

func section(description string) object {
	return object{"type": []string{"object", "null"}, "description": description, "additionalProperties": false, "properties": object{}}
}

func valueOf(k config.Key) object {
	switch {
	case k.Kind == config.Bool:
		return object{"type": "boolean"}
	case k.Kind == config.Number:
		return object{"type": "integer"}
	case k.Repeats:
		return object{"type": []string{"string", "number", "array"}, "items": object{"type": []string{"string", "number"}}}
	}
	return object{"type": []string{"string", "number"}}
}

// TestConfigSchema holds the schema to what is read. Run it with -update to write the file.
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

// TestConfigAgree holds that schema and program take and refuse the same.
func TestConfigAgree(t *testing.T) {
	compiler := jsonschema.NewCompiler()
	schema, err := compiler.Compile(configSchema)
	if err != nil {
		t.Fatal(err)
	}
	commands := configurable(nil, newApp(io.Discard, io.Discard).Commands)
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
		"generate: {archive: x}":             false,
		"generate: {output: [a]}":            false,
		"generate: {json: 1}":                false,
		"generate: 3":                        false,
		"archive: {output: x}":               false,
		"archive: {lookup: {archives: [x]}}": false,
		"jobs: many":                         false,
		"select: {a: b}":                     false,
		"select: [[a]]":                      false,
		"padding: true":                      false,
		"- a":                                false,
	} {
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := config.Read(path, commands)
		if bySchema := schema.Validate(v); (bySchema == nil) != want || (err == nil) != want {
			t.Errorf("%q: want %v; schema: %v, program: %v", text, want, bySchema, err)
		}
	}
}

// TestConfigKeys holds that one name is one kind of thing for all commands, so that it can stand for all of them.
func TestConfigKeys(t *testing.T) {
	known := make(map[string]config.Key)
	for _, c := range configurable(nil, newApp(io.Discard, io.Discard).Commands) {
		for _, k := range c.Keys {
			if old, ok := known[k.Name]; ok && old != k {
				t.Errorf("%s: %+v for %s, %+v for another command", k.Name, k, strings.Join(c.Name, " "), old)
			}
			known[k.Name] = k
		}
	}
	for _, name := range []string{"btf", "select", "objects", "archive", "output", "require", "jobs", "json"} {
		if _, ok := known[name]; !ok {
			t.Errorf("%s is missing in %v", name, slices.Sorted(maps.Keys(known)))
		}
	}
	for _, name := range []string{"config", "debug", "help"} {
		if _, ok := known[name]; ok {
			t.Errorf("%s can stand in the file", name)
		}
	}
}

// TestConfigPage runs the example of docs/config.md.
func TestConfigPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/config.md")
	if err != nil {
		t.Fatal(err)
	}
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
