// SPDX-License-Identifier: Apache-2.0

package main

import (
	"embed"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/bpfobj/machine"
	"github.com/btfgen/btfgen/internal/text/escape"
)

// completeWord is the command that shell scripts call for completions: btfgen __complete WORD..., where the last word is
// the one to complete. It is not for users.
const completeWord = "__complete"

// completionScripts call __complete and pass the completions to the shell. They do not depend on the options.
//
//go:embed completion
var completionScripts embed.FS

// shells have a completion script.
var shells = []string{"bash", "zsh", "fish"}

func runCompletion(c *cli.Context) error {
	shell := c.Args().First()
	if c.NArg() != 1 || !slices.Contains(shells, shell) {
		return usagef("completion needs one SHELL: %s", listOr(shells))
	}
	script, err := completionScripts.ReadFile("completion/btfgen." + shell)
	if err != nil {
		return err
	}
	_, err = c.App.Writer.Write(script)
	return err
}

// candidate is what a word can become, with its meaning.
type candidate struct{ text, meaning string }

// complete answers a script: a line for each candidate, with its meaning after a tab. Without a line, the shell completes files.
func complete(app *cli.App, words []string) {
	for _, c := range completions(app, words) {
		escape.Fprintf(app.Writer, "%s\t%s\n", c.text, c.meaning)
	}
}

// completions returns what the last word can become: a command, an option, or a value of an option that has few.
func completions(app *cli.App, words []string) (all []candidate) {
	if len(words) == 0 {
		return nil
	}
	before, word := words[:len(words)-1], words[len(words)-1]
	add := func(text, meaning string) {
		if strings.HasPrefix(text, word) {
			all = append(all, candidate{text, meaning})
		}
	}
	l := &commandLine{command: root(app)}
	before = l.descend(before)
	if group := isGroup(l.command); group && len(before) > 0 || !group && l.help {
		return nil // these words make no sense
	} else if group {
		for _, c := range l.command.Subcommands {
			add(c.Name, c.Usage)
		}
		if !l.help {
			add("help", "print help")
		}
		if !l.help && l.path == "" {
			add("version", "print the version")
		}
		return all
	}
	_ = l.read(before) // only for l.pending
	option, start := l.pending, 0
	if i := strings.IndexByte(word, '='); i >= 0 && option == nil && word[0] == '-' {
		option, start = l.flag(strings.TrimLeft(word[:i], "-")), i+1
	}
	if option == nil && start == 0 && strings.HasPrefix(word, "-") {
		for _, o := range describeAll(l.command) {
			add("--"+o.name, o.usage)
		}
		return all
	}
	start += strings.LastIndexByte(word[start:], ',') + 1
	for _, v := range values(l.path, option) {
		add(word[:start]+v, "")
	}
	return all
}

// values returns the values of an option that has few, or of the argument of 'btfgen completion'.
func values(command string, f cli.Flag) []string {
	if g, ok := f.(*cli.GenericFlag); ok {
		return g.Value.(*word).words
	}
	switch {
	case f == nil && command == "completion":
		return shells
	case f == nil:
		return nil
	}
	switch f.Names()[0] {
	case "arch":
		return machine.Archs()
	case "result":
		return results
	case "fail-on":
		return append(commandClasses[command].all(), noClass)
	}
	return nil
}
