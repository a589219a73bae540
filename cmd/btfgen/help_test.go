// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/urfave/cli/v2"
)

// TestHelpWidth holds that help fits a terminal, and has every option.
func TestHelpWidth(t *testing.T) {
	app := newApp(io.Discard, io.Discard)
	pages := 0
	var check func(commands []*cli.Command, among []*cli.Command)
	check = func(commands []*cli.Command, among []*cli.Command) {
		pages++
		var b bytes.Buffer
		printHelp(&b, app, commands)
		name := strings.Join(names(commands), " ")
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > helpWidth {
				t.Errorf("%s: %d characters: %s", name, n, line)
			}
		}
		for _, c := range among {
			if !strings.Contains(b.String(), "\n  "+c.Name+" ") {
				t.Errorf("%s: %s is missing", name, c.Name)
			}
			check(append(commands[:len(commands):len(commands)], c), c.Subcommands)
		}
		if len(commands) == 0 {
			return
		}
		for _, f := range commands[len(commands)-1].Flags {
			if o := describe(f); o != nil && !strings.Contains(b.String(), o.typed()) {
				t.Errorf("%s: %s is missing", name, o.typed())
			}
		}
	}
	check(nil, app.Commands)
	if pages < 15 {
		t.Errorf("%d pages", pages)
	}
}

func TestParagraphs(t *testing.T) {
	text := "One line that goes on\nand on. " + strings.Repeat("word ", 20) + "\n\n    name  " + strings.Repeat("what it means ", 6) + "\n    other  short\nEnd."
	want := []string{
		"", "One line that goes on and on. word word word word word word word word word word\nword word word word word word word word word word",
		"", "    name  what it means what it means what it means what it means what it means\n          what it means", "    other  short",
		"", "End.",
	}
	got := paragraphs(text)
	for i := range got {
		got[i] = strings.TrimRight(got[i], " ")
	}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("%q\nwant %q", got, want)
	}
}
