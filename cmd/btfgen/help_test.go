// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"unicode/utf8"
)

// Help fits a terminal and has every option.
func TestHelp(t *testing.T) {
	for _, p := range topics(newApp(io.Discard, io.Discard)) {
		var b bytes.Buffer
		printHelp(&b, p)
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > helpWidth && strings.Contains(strings.TrimSpace(line), " ") {
				t.Errorf("%s: %d characters: %s", p.name, n, line)
			}
		}
		for _, part := range p.sections() {
			for _, block := range blocks(part.text) {
				if words := strings.Fields(block); strings.HasPrefix(block, "--") && !strings.Contains(b.String(), "\n"+words[0]+" "+words[1]) {
					t.Errorf("%s: the text %q is a table", p.name, block)
				}
			}
		}
		for _, c := range p.Subcommands {
			if !strings.Contains(b.String(), "\n  "+c.Name+" ") {
				t.Errorf("%s: %s is missing", p.name, c.Name)
			}
		}
		for _, o := range describeAll(p.Command) {
			if !strings.Contains(b.String(), "\n  "+o.typed+" ") && !strings.Contains(b.String(), "\n  "+o.typed+"\n") {
				t.Errorf("%s: %s is missing", p.name, o.typed)
			}
		}
	}
}

func TestRow(t *testing.T) {
	got := row("-o, --output OUT", strings.Repeat("word ", 12)) + "\n" + row("--a-long-option PLACEHOLDER", "x")
	const want = "  -o, --output OUT        word word word word word word word word word word word\n" +
		"                          word\n" +
		"  --a-long-option PLACEHOLDER\n" +
		"                          x"
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
