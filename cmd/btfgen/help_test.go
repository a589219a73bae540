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

// TestOptionGroups checks that groups have options of their command, each once, and that help prints every option.
func TestOptionGroups(t *testing.T) {
	groups := 0
	for _, p := range topics(newApp(io.Discard, io.Discard)) {
		options := make(map[string]int)
		for _, o := range describeAll(p.Command) {
			options[o.name] = 1
		}
		for _, g := range optionGroups[p.name] {
			groups++
			for _, name := range g.names {
				if options[name]++; options[name] != 2 {
					t.Errorf("%s: %s: --%s is in another group, or no option", p.name, g.title, name)
				}
			}
		}
		printed := 0
		for _, s := range p.sections() {
			if s.title == optionsTitle || s.title == otherOptions || strings.HasPrefix(s.title, "Options for ") {
				printed += strings.Count(s.text, "\n")
			}
		}
		if printed != len(describeAll(p.Command)) {
			t.Errorf("%s: %d options are printed, want %d", p.name, printed, len(describeAll(p.Command)))
		}
	}
	if groups == 0 {
		t.Error("no groups")
	}
}

// topics returns the topic of btfgen itself and those of all commands.
func topics(app *cli.App) (all []topic) {
	var walk func(c *cli.Command, name string)
	walk = func(c *cli.Command, name string) {
		all = append(all, topic{Command: c, name: name})
		for _, sub := range c.Subcommands {
			walk(sub, name+" "+sub.Name)
		}
	}
	walk(root(app), app.Name)
	return all
}
