// SPDX-License-Identifier: Apache-2.0

package main

import (
	"embed"
	"io"
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

// completion is what a word can become.
type completion struct {
	files string      // which files: noFiles, anyFile or directory
	words []candidate // those that begin with the word
}

const (
	noFiles   = "none"
	anyFile   = "files"
	directory = "directories"
)

// candidate is a word and its meaning.
type candidate struct{ text, meaning string }

// complete answers a script: the kind of files on the first line, then one line for each word, with its meaning after a tab.
func complete(app *cli.App, words []string) error {
	if len(words) == 0 {
		return usagef("%s is for the scripts of 'btfgen completion'", completeWord)
	}
	c := completions(app, words[:len(words)-1], words[len(words)-1])
	var b strings.Builder
	escape.Fprintf(&b, "%s\n", c.files)
	for _, w := range c.words {
		escape.Fprintf(&b, "%s\t%s\n", w.text, w.meaning)
	}
	_, err := io.WriteString(app.Writer, b.String())
	return err
}

// completions returns what a word can become after others. There are none after words that make no sense.
func completions(app *cli.App, before []string, word string) *completion {
	l := &commandLine{command: root(app)}
	rest := l.descend(before)
	if group := isGroup(l.command); group && len(rest) > 0 || !group && l.help {
		return matching(word, nil)
	} else if group {
		all := commandNames(l.command)
		if !l.help {
			all = append(all, candidate{"help", "print help"}, candidate{"--help", "print help"})
		}
		if !l.help && l.path == "" {
			all = append(all, candidate{"version", "print the version"}, candidate{"--version", "print the version"})
		}
		return matching(word, all)
	}
	_ = l.read(rest) // completion goes on after errors
	if l.pending != nil {
		return l.completeValue(app, l.pending, "", word)
	}
	if l.literal || !strings.HasPrefix(word, "-") {
		return l.completeArgument(app, word)
	}
	if option, value, ok := strings.Cut(word, "="); ok {
		if f := l.flag(strings.TrimLeft(option, "-")); f != nil && takesValue(f) {
			return l.completeValue(app, f, option+"=", value)
		}
		return matching(word, nil)
	}
	var all []candidate
	for _, o := range describeAll(l.command) {
		all = append(all, candidate{"--" + o.name, o.usage})
	}
	return matching(word, all)
}

func commandNames(c *cli.Command) (all []candidate) {
	for _, sub := range c.Subcommands {
		all = append(all, candidate{sub.Name, sub.Usage})
	}
	return all
}

// matching returns the candidates that begin with a word, without files. Options are among them only if the word is not empty.
func matching(word string, all []candidate) *completion {
	return &completion{noFiles, slices.DeleteFunc(all, func(c candidate) bool {
		return !strings.HasPrefix(c.text, word) || word == "" && strings.HasPrefix(c.text, "-")
	})}
}

// completeValue completes the value of an option. before is what precedes it in the word: "--option=" or nothing.
func (l *commandLine) completeValue(app *cli.App, f cli.Flag, before, value string) *completion {
	all := values(l.path, f)
	o := describe(f)
	if f.Names()[0] == "keep" {
		all = plain("enum:", "struct:", "union:", "typedef:", "func:", "var:")
	}
	if o != nil && o.value == "SELECTOR" {
		i := strings.LastIndexByte(value, ',') + 1
		before, value = before+value[:i], value[i:]
		all = selectorTerms(l.keys(app), value)
	}
	if i := strings.LastIndexByte(value, ',') + 1; i > 0 && o != nil && o.value == "LIST" {
		chosen := strings.Split(value[:i], ",")
		all = slices.DeleteFunc(all, func(c candidate) bool { return c.text == noClass || slices.Contains(chosen, c.text) })
		before, value = before+value[:i], value[i:]
	}
	c := matching(value, all)
	for i := range c.words {
		c.words[i].text = before + c.words[i].text
	}
	switch {
	case o == nil || !isPath(o.value) && o.value != "KERNEL": // a file or a key
	case o.value == "DIR":
		c.files = directory
	default:
		c.completeFiles(f.Names()[0], before, value)
	}
	return c
}

// completeArgument completes an argument after others.
func (l *commandLine) completeArgument(app *cli.App, word string) *completion {
	all := argumentKeys(l.command)
	if len(all) == 0 || len(l.args) >= len(all) && !all[len(all)-1].repeats && all[len(all)-1].name != "command" {
		return matching(word, nil)
	}
	a := all[min(len(l.args), len(all)-1)]
	switch a.name {
	case "command":
		of := &commandLine{command: root(app)}
		if len(of.descend(l.args)) > 0 {
			return matching(word, nil)
		}
		return matching(word, commandNames(of.command))
	case "shell":
		return matching(word, plain(shells...))
	case "keys":
		return matching(word, keyParts(l.keys(app), word))
	}
	c := matching(word, nil)
	if a.path {
		c.completeFiles(a.name, "", word)
	}
	if a.name == "objects" && word != "" && !strings.Contains(word, "=") {
		for _, m := range machine.Archs() {
			if strings.HasPrefix(m, word) {
				c.words = append(c.words, candidate{m + "=", "an OBJECT for this machine"})
			}
		}
	}
	return c
}

// values returns the values of an option that has few.
func values(command string, f cli.Flag) []candidate {
	switch f.Names()[0] {
	case "fail-on":
		var all []candidate
		for _, c := range commandClasses[command].all() {
			all = append(all, candidate{string(c), strings.ReplaceAll(meanings[c], "`", "")})
		}
		return append(all, candidate{noClass, "no finding at all"})
	case "arch":
		return plain(machine.Archs()...)
	case "result":
		return plain(results...)
	}
	if g, ok := f.(*cli.GenericFlag); ok {
		return plain(g.Value.(*word).words...)
	}
	return nil
}

func plain(texts ...string) []candidate {
	all := make([]candidate, len(texts))
	for i, t := range texts {
		all[i].text = t
	}
	return all
}
