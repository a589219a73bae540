// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// TestRelologDoc compares the examples in docs/relolog.md with the output of their
// commands. Run it with -update to write the file.
func TestRelologDoc(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	path := filepath.Join("docs", "relolog.md")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	schema := loadSchema(t)
	var got strings.Builder
	examples, fence := 0, false // fence: inside the block for an example
	replace := false
	for line := range strings.Lines(string(data)) {
		switch {
		case strings.HasPrefix(line, "```") && (replace || fence):
			replace, fence = false, !fence
			continue
		case fence:
			continue
		}
		replace = false
		got.WriteString(line)
		head, args, ok := strings.Cut(strings.TrimSuffix(strings.TrimSpace(line), " -->"), ": ")
		if !ok || !strings.HasPrefix(head, "<!-- example") {
			continue
		}
		examples++
		replace = true
		var out, msgs bytes.Buffer
		if s := run(t.Context(), strings.Fields(args), &out, &msgs); s != statusOK && s != statusFindings || out.Len() == 0 {
			t.Fatalf("btfgen %s: exit status %d: %s", args, s, &msgs)
		}
		if strings.Contains(head, "json") {
			first, _, _ := bytes.Cut(out.Bytes(), []byte("\n"))
			validate(t, schema, first)
			fmt.Fprintf(&got, "```json\n%s\n```\n", indent(t, first))
		} else {
			fmt.Fprintf(&got, "```\n%s```\n", out.String())
		}
	}
	if examples == 0 {
		t.Fatal("no examples")
	}
	if *update {
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if d := cmp.Diff(string(data), got.String()); d != "" {
		t.Errorf("docs/relolog.md is not up to date, run: go test ./cmd/btfgen -run TestRelologDoc -update\n%s", d)
	}
	documented(t, got.String(), schema)
}

// indent formats a line of JSON.
func indent(t *testing.T, line []byte) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, line, "", "  "); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// documented checks that the schema describes each of its fields, and that the text shows it in an example.
func documented(t *testing.T, text string, s *jsonschema.Schema) {
	t.Helper()
	for _, name := range properties(s, make(map[*jsonschema.Schema]bool)) {
		if !strings.Contains(text, `"`+name+`": `) {
			t.Errorf("docs/relolog.md has no example of %s", name)
		}
	}
	for _, part := range []*jsonschema.Schema{s, s.Properties["reason"].Ref, s.Properties["local"].Ref, s.Properties["candidates"].Items2020.Ref} {
		for name, p := range part.Properties {
			if p.Description == "" {
				t.Errorf("docs/schema/relolog.schema.json does not describe %s", name)
			}
		}
	}
}

// properties returns the names of all fields in a schema.
func properties(s *jsonschema.Schema, seen map[*jsonschema.Schema]bool) (names []string) {
	if s == nil || seen[s] {
		return nil
	}
	seen[s] = true
	for n, p := range s.Properties {
		names = append(append(names, n), properties(p, seen)...)
	}
	names = append(names, properties(s.Ref, seen)...)
	names = append(names, properties(s.Items2020, seen)...)
	for _, o := range s.OneOf {
		names = append(names, properties(o, seen)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func loadSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	s, err := jsonschema.NewCompiler().Compile(filepath.Join("docs", "schema", "relolog.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func validate(t *testing.T, s *jsonschema.Schema, line []byte) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(v); err != nil {
		t.Errorf("%s: %v", line, err)
	}
}

// TestRelologSchema validates what all objects of testdata give on kernels of
// either byte order, and sees that the schema knows every field.
func TestRelologSchema(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	schema := loadSchema(t)
	objects, err := filepath.Glob(filepath.Join("testdata", "bpf", "*.o"))
	if err != nil || len(objects) == 0 {
		t.Fatalf("%d objects, error %v", len(objects), err)
	}
	args := []string{"relolog", "--json", "--btf", "testdata/vmlinux/debian/12/x86_64", "--btf", "testdata/vmlinux/debian/13/s390x"}
	var out, msgs bytes.Buffer
	if s := run(t.Context(), append(args, objects...), &out, &msgs); s != statusFindings {
		t.Fatalf("exit status %d: %s", s, &msgs)
	}
	known := properties(schema, make(map[*jsonschema.Schema]bool))
	seen := make(map[string]bool)
	lines := 0
	for line := range bytes.Lines(out.Bytes()) {
		if bytes.HasPrefix(line, []byte(`{"class"`)) { // TestSchemas checks findings
			continue
		}
		lines++
		validate(t, schema, line)
		var v any
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		fields(v, seen)
	}
	for f := range seen {
		if !slices.Contains(known, f) {
			t.Errorf("the schema does not know %s", f)
		}
	}
	for _, f := range known {
		if !seen[f] {
			t.Errorf("no line has %s", f)
		}
	}
	t.Logf("%d lines", lines)
	for _, bad := range []string{
		`{}`,
		`{"class":"damaged","message":"x"}`,
		`{"object":"o","section":"s","index":0,"insn":0,"kind":"byte_off","kernel":"k","local":{"type_id":1,"type":"int","spec":"0","path":""},"candidates":[],"old":0,"result":"resolved"}`,
		`{"object":"o","section":"s","index":0,"insn":0,"kind":"byte_offset","kernel":"k","local":{"type_id":1,"type":"int","spec":"0","path":""},"candidates":[],"old":0,"result":"error","reason":"x"}`,
	} {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(bad))
		if err != nil {
			t.Fatal(err)
		}
		if schema.Validate(v) == nil {
			t.Errorf("the schema takes %s", bad)
		}
	}
}

// fields collects the names of all fields in a value.
func fields(v any, seen map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			seen[k] = true
			fields(x, seen)
		}
	case []any:
		for _, x := range v {
			fields(x, seen)
		}
	}
}
