// SPDX-License-Identifier: Apache-2.0

package main

import (
	"embed"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/foreign"
	"github.com/btfgen/btfgen/internal/machine"
)

// completeWord is in the place of a command where a shell asks what may be typed: btfgen __complete WORD..., of which
// the last word is the one to complete. No help shows it, because only the scripts of completionCommand know what to
// make of the answer.
const completeWord = "__complete"

// completionScripts ask for completions and hand them to the shell. They stay the same when options do not.
//
//go:embed completion
var completionScripts embed.FS

func completionCommand() *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "write the script that makes a shell complete commands, options and values",
		ArgsUsage: "SHELL",
		Description: "SHELL is bash, zsh or fish, and the script is for a file that the shell reads:\n\n" +
			"    bash  ~/.local/share/bash-completion/completions/btfgen\n" +
			"    zsh   _btfgen in a directory of $fpath\n" +
			"    fish  ~/.config/fish/completions/btfgen.fish\n\n" +
			"The packages have installed them.",
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return usagef("completion needs one SHELL: %s", listOr(shells))
			}
			shell := c.Args().First()
			if !slices.Contains(shells, shell) {
				return usagef("completion %q: want %s", shell, listOr(shells))
			}
			script, err := completionScripts.ReadFile("completion/btfgen." + shell)
			if err != nil {
				return err
			}
			_, err = c.App.Writer.Write(script)
			return err
		},
	}
}

// shells are those that there are scripts for.
var shells = []string{"bash", "zsh", "fish"}

// listOr is a list for people.
func listOr(words []string) string {
	n := len(words) - 1
	return strings.Join(words[:n], ", ") + " or " + words[n]
}

// completion is what a word may become.
type completion struct {
	files string      // what of the file system it may be as well: noFiles, anyFile or directory
	words []candidate // which begin with what is there of it
}

const (
	noFiles   = "none"
	anyFile   = "files"
	directory = "directories"
)

// candidate is a word, and what it means.
type candidate struct{ text, meaning string }

// complete answers a script: what may stand for files in a line, then a line for each word, with its meaning behind a tab.
func complete(app *cli.App, words []string) error {
	if len(words) == 0 {
		return usagef("%s is for the scripts of 'btfgen completion'", completeWord)
	}
	c := completions(app, words[:len(words)-1], words[len(words)-1])
	var b strings.Builder
	foreign.Fprintf(&b, "%s\n", c.files)
	for _, w := range c.words {
		foreign.Fprintf(&b, "%s\t%s\n", w.text, w.meaning)
	}
	_, err := io.WriteString(app.Writer, b.String())
	return err
}

// completions says what word may become behind others. These may be anything: what makes no sense has no completions.
func completions(app *cli.App, before []string, word string) *completion {
	among, within := app.Commands, []*cli.Command(nil)
	help := false
	for len(among) > 0 {
		if len(before) == 0 {
			return words(word, commandNames(among, len(within) == 0, help))
		}
		a := before[0]
		before = before[1:]
		switch c := find(among, a); {
		case c != nil:
			within, among = append(within, c), c.Subcommands
		case isHelp(a):
			help = true
		default:
			return words(word, nil)
		}
	}
	if help {
		return words(word, nil)
	}
	l := &commandLine{commands: within, all: app.Commands}
	return l.complete(before, word)
}

// commandNames are the words that may stand in the place of a command.
func commandNames(among []*cli.Command, top, help bool) []candidate {
	var all []candidate
	for _, c := range among {
		all = append(all, candidate{c.Name, c.Usage})
	}
	if !help {
		all = append(all, candidate{"help", "what commands and options there are"}, candidate{"--help", "the same"})
		if top {
			all = append(all, candidate{"version", "which version this is"}, candidate{"--version", "the same"})
		}
	}
	return all
}

// words is a completion without files: those candidates that begin with a word. Options are among them if it does.
func words(word string, all []candidate) *completion {
	return &completion{noFiles, slices.DeleteFunc(all, func(c candidate) bool {
		return !strings.HasPrefix(c.text, word) || word == "" && strings.HasPrefix(c.text, "-")
	})}
}

// complete completes a word of a command, behind others.
func (l *commandLine) complete(before []string, word string) *completion {
	only := false // what follows is an argument whatever it looks like
	for len(before) > 0 {
		a := before[0]
		before = before[1:]
		switch {
		case only || len(a) < 2 || a[0] != '-':
			l.args = append(l.args, a)
			continue
		case a == "--":
			only = true
			continue
		}
		used, err := l.option(a, []string{"0"}) // which every option takes for a value
		switch {
		case err != nil || used == 0:
		case len(before) == 0:
			return l.completeValue(l.options[len(l.options)-1].flag, "", word)
		default:
			before = before[1:]
		}
	}
	if only || !strings.HasPrefix(word, "-") {
		return l.completeArgument(word)
	}
	if option, value, ok := strings.Cut(word, "="); ok {
		if f := l.flag(strings.TrimLeft(option, "-")); f != nil && takesValue(f) {
			return l.completeValue(f, option+"=", value)
		}
		return words(word, nil)
	}
	return words(word, l.optionNames())
}

// optionNames are the long options of the command.
func (l *commandLine) optionNames() []candidate {
	var all []candidate
	for _, o := range options(l.last()) {
		all = append(all, candidate{o.names[0], o.usage})
	}
	return append(all, candidate{"--help", "what this command does, and its options"})
}

// completeValue completes the value of an option. before is what the word has in front of it: "--option=" or nothing.
func (l *commandLine) completeValue(f cli.Flag, before, value string) *completion {
	all := values(strings.Join(names(l.commands), " "), f)
	if i := strings.LastIndexByte(value, ',') + 1; isList(f) && i > 0 {
		chosen := strings.Split(value[:i], ",")
		all = slices.DeleteFunc(all, func(c candidate) bool { return c.text == noClass || slices.Contains(chosen, c.text) })
		before, value = before+value[:i], value[i:]
	}
	c := words(value, all)
	for i := range c.words {
		c.words[i].text = before + c.words[i].text
	}
	c.files = filesOf(describe(f))
	return c
}

// filesOf says what of the file system the value of an option may be.
func filesOf(o *described) string {
	switch {
	case o == nil || !isPath(o.value):
		return noFiles
	case o.value == "DIR":
		return directory
	}
	return anyFile
}

// completeArgument completes an argument behind those that there are.
func (l *commandLine) completeArgument(word string) *completion {
	all := arguments(l.last())
	if len(all) == 0 {
		return words(word, nil)
	}
	a := all[min(len(l.args), len(all)-1)]
	c := words(word, nil)
	switch {
	case a.Name == "command":
		return words(word, l.documented())
	case len(l.args) >= len(all) && !a.Repeats:
	case a.Name == "shell":
		return words(word, plain(shells...))
	case a.Name == "objects" && word != "" && !strings.Contains(word, "="):
		for _, m := range machine.Archs() {
			if strings.HasPrefix(m, word) {
				c.words = append(c.words, candidate{m + "=", "an OBJECT for this machine"})
			}
		}
		fallthrough
	case a.Path, a.Name == "btf":
		c.files = anyFile
	}
	return c
}

// documented are the commands that have a page, behind the arguments.
func (l *commandLine) documented() []candidate {
	among := l.all
	for _, a := range l.args {
		c := find(among, a)
		if c == nil {
			return nil
		}
		among = c.Subcommands
	}
	return commandNames(among, false, true)
}

// values are those of an option of which there are few.
func values(command string, f cli.Flag) []candidate {
	switch name := f.Names()[0]; name {
	case "fail-on":
		var all []candidate
		for _, c := range contract[command].all() {
			all = append(all, candidate{string(c), strings.ReplaceAll(meanings[c], "`", "")})
		}
		return append(all, candidate{noClass, "no finding at all"})
	case "arch":
		return plain(machine.Archs()...)
	case "loader":
		if command == "verify" { // of each by itself
			return plain("libbpf", "ebpf-go", "aya")
		}
		return plain(fixed[name]...)
	default:
		return plain(fixed[name]...)
	}
}

// fixed has the values of options that mean the same for all commands, or most.
var fixed = map[string][]string{
	"color":   {"auto", "always", "never"},
	"format":  {"text", "markdown", "json", "junit", "sarif", "html", "min-kernel", "table", "badge"},
	"loader":  {"libbpf", "ebpf-go", "both"},
	"layout":  {"btfhub", "bcc"},
	"padding": {"implicit", "explicit"},
	"result":  {"resolved", "absent", "poisoned", "ambiguous", "error"},
	"shard":   {"auto"},
	"xz":      {"auto", "program", "go"},
}

func plain(texts ...string) []candidate {
	all := make([]candidate, len(texts))
	for i, t := range texts {
		all[i].text = t
	}
	return all
}
