// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// TestFrozenJSON checks that outputs of earlier versions match today's schemas, which only get fields. Files are named like their
// schemas; a .jsonl file has a document on each line.
func TestFrozenJSON(t *testing.T) {
	all := schemas(t)
	files, err := filepath.Glob("../../testdata/json/outputs/*")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d files (%v)", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(filepath.Base(file), ".")
		schema, ok := all[name]
		if !ok {
			t.Fatalf("%s: no schema %s", file, name)
		}
		documents := [][]byte{data}
		if filepath.Ext(file) == ".jsonl" {
			documents = bytes.Split(bytes.TrimSpace(data), []byte("\n"))
		}
		for _, d := range documents {
			doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(d))
			if err == nil {
				err = schema.Validate(doc)
			}
			if err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}

// TestFrozenFiles reads the manifest of an earlier version, and a tree with its list.
func TestFrozenFiles(t *testing.T) {
	dir, err := filepath.Abs("../../testdata")
	if err != nil {
		t.Fatal(err)
	}
	kernels, object := dir+"/vmlinux/debian/12/x86_64", dir+"/bpf/execsnoop.bpfel.o"
	t.Chdir(t.TempDir())
	for _, f := range []string{"x.btfa", "x.json"} {
		data, err := os.ReadFile(filepath.Join(dir, "json", f))
		if err != nil {
			t.Fatal(err)
		}
		write(t, f, string(data))
	}
	if err := os.CopyFS("tree", os.DirFS(filepath.Join(dir, "json", "tree"))); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"generate", "--btf", kernels, "-o", "y.btfa", "--reuse", "x.btfa", object},
		{"archive", "convert", "tree", "-o", "merged.btfa"},
		{"generate", "--btf", kernels, "-o", "tree/", object}, // replaces the files that the list names
	} {
		var out bytes.Buffer
		if status := run(t.Context(), args, &out, &out); status != statusOK {
			t.Errorf("%s: exit status %d\n%s", strings.Join(args, " "), status, &out)
		}
	}
	if _, err := os.Stat("tree/debian/11"); err == nil {
		t.Error("tree/debian/11 is still there")
	}
}
