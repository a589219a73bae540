// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/cli.md")

// TestReference compares docs/cli.md with the commands. Run it with -update to write the file.
func TestReference(t *testing.T) {
	const path = "../../docs/cli.md"
	app := newApp(io.Discard, io.Discard)
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, _, ok := strings.Cut(string(want), generatedPart)
	if !ok {
		t.Fatalf("%s: no line %s", path, strings.TrimSpace(generatedPart))
	}
	got := before + generatedPart + reference(app)
	for _, p := range topics(app) {
		for _, name := range implied(&p) {
			if !slices.ContainsFunc(describeAll(p.Command), func(o *described) bool { return o.name == name }) {
				t.Errorf("%s has no --%s", p.name, name)
			}
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("docs/cli.md is not up to date, run: go test ./cmd/btfgen -run TestReference -update\n%s", d)
	}
}
