// SPDX-License-Identifier: Apache-2.0

package main

import (
	"embed"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/bpfobj/machine"
	"github.com/btfgen/btfgen/internal/corpus/fetch"
	"github.com/btfgen/btfgen/internal/report/codes"
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

// completion is what a word can become, with its meaning.
type completion struct{ text, meaning string }

// complete answers a script: a line for each candidate, with its meaning after a tab. Without a line, the shell completes files.
func complete(app *cli.App, words []string) {
	for _, c := range completions(app, words) {
		escape.Fprintf(app.Writer, "%s\t%s\n", c.text, c.meaning)
	}
}

// completions returns what the last word can become: a command, an option, or a value of an option that has few.
func completions(app *cli.App, words []string) (all []completion) {
	if len(words) == 0 {
		return nil
	}
	before, word := words[:len(words)-1], words[len(words)-1]
	add := func(text, meaning string) {
		if strings.HasPrefix(text, word) {
			all = append(all, completion{text, meaning})
		}
	}
	l := &commandLine{command: root(app)}
	before = l.descend(before)
	if group := isGroup(l.command); group && len(before) > 0 || !group && l.help {
		return nil // the words are not a command line
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
	_ = l.read(before) // only l.pending matters
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
	for _, v := range values(l, option, word[start:]) {
		add(word[:start]+v.text, v.meaning)
	}
	return all
}

// values returns what the beginning of a value of an option can become, or of an argument if the option is nil, where there are few.
func values(l *commandLine, f cli.Flag, begun string) (all []completion) {
	add := func(words ...string) {
		for _, w := range words {
			all = append(all, completion{w, ""})
		}
	}
	if g, ok := f.(*cli.GenericFlag); ok {
		add(g.Value.(*word).words...)
		return all
	}
	name := ""
	if f != nil {
		name = f.Names()[0]
	}
	switch {
	case name == "arch":
		add(machine.Archs()...)
	case name == "result":
		add(results...)
	case name == "shard":
		add("auto", "auto/")
	case name == "fail-on":
		for _, cl := range commandClasses[l.path].all() {
			all = append(all, completion{string(cl), plainMeaning(cl)})
		}
		add(noClass)
		if l.path == "check" && begun != "" {
			all = append(all, codeCandidates()...)
		}
	case name == "select", name == "exclude", name == "require", name == "prune":
		add(seriesOf(begun, true)...)
		add(machine.Archs()...)
	case f != nil:
	case l.path == "completion" && len(l.args) == 0:
		add(shells...)
	case l.path == "explain":
		all = codeCandidates()
		for _, cl := range slices.Sorted(maps.Keys(meanings)) {
			all = append(all, completion{string(cl), plainMeaning(cl)})
		}
	case l.path == "corpus fetch", l.path == "corpus pull" && len(l.args) > 0:
		add(seriesOf(begun, false)...)
	}
	return all
}

// codeCandidates returns the codes of findings with their titles.
func codeCandidates() (all []completion) {
	for _, f := range codes.Families() {
		for _, e := range f.Codes {
			all = append(all, completion{string(e.Code), e.Title})
		}
	}
	return all
}

// seriesOf returns the series of the catalogue that the beginning of one can become: ID/VERSION_ID, behind a second slash with an architecture. If
// IDs can stand alone, only these are returned before the first slash.
func seriesOf(begun string, alone bool) (all []string) {
	catalogue, err := fetch.Default()
	if err != nil {
		return nil
	}
	for _, d := range catalogue.Distributions {
		for version := range d.Versions {
			words := []string{d.ID + "/" + version}
			switch slashes := strings.Count(begun, "/"); {
			case slashes > 1:
				words = nil
				for arch := range d.Machines {
					words = append(words, d.ID+"/"+version+"/"+arch)
				}
			case slashes == 0 && alone:
				words = []string{d.ID}
			}
			all = append(all, words...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
