// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"text/template"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/job/lint"
	"github.com/btfgen/btfgen/internal/text/escape"
)

// topic describes a command, or btfgen itself. Help, docs/cli.md and the manual are written from topics.
type topic struct {
	*cli.Command
	name    string    // command as typed: "btfgen archive list"
	options optionSet // the options that help prints
}

// optionSet is a part of a command's options that help prints.
type optionSet int

const (
	allOptions  optionSet = iota
	exceptBoot            // all except the options of --boot
	optionsBoot           // the options of --boot, and those that it accepts
)

// bootTitle is the title of the options of --boot.
const bootTitle = "Options for booting kernels"

// helpText is what is written about commands, with places for lists that follow from the code.
//
//go:embed help.txt
var helpText string

// helpPart is a part of what is said of a command, in Markdown: paragraphs, indented code, and lists with lines of the form
// "- `term`: meaning".
type helpPart struct{ title, text string }

// helpFilled is helpText with its lists.
var helpFilled = sync.OnceValue(func() string {
	t := template.Must(template.New("help.txt").Funcs(template.FuncMap{
		"join": joinClasses,
	}).Parse(helpText))
	var b strings.Builder
	if err := t.Execute(&b, map[string]any{"Codes": lint.Codes, "Classes": meanings, "Commands": commandClasses}); err != nil {
		panic(err)
	}
	return b.String()
})

// written returns the sections of help.txt about a command, or below another heading. The first has no title.
func written(heading string) (all []helpPart) {
	_, text, _ := strings.Cut("\n"+helpFilled(), "\n# "+heading+"\n")
	text, _, _ = strings.Cut(text, "\n# ")
	for _, part := range strings.Split("\n"+text, "\n## ") {
		title, text, _ := strings.Cut(part, "\n")
		all = append(all, helpPart{title, strings.Trim(text, "\n") + "\n"})
	}
	return all
}

// blocks splits the text of a section. A block begins with " " for code and with "- " for a list.
func blocks(text string) []string { return strings.Split(strings.Trim(text, "\n"), "\n\n") }

// listItem splits a line of a list.
func listItem(line string) (term, meaning string) {
	term, meaning, _ = strings.Cut(line[len("- "):], ": ")
	return term, meaning
}

// sections returns the sections of a topic.
func (p *topic) sections() []helpPart {
	options := describeAll(p.Command)
	arguments := p.ArgsUsage
	switch {
	case isGroup(p.Command):
		arguments = "COMMAND"
	case len(options) > 0:
		arguments = "[options] " + arguments
	}
	text := written(p.name)
	text[0] = helpPart{"Description", strings.ToUpper(p.Usage[:1]) + p.Usage[1:] + ".\n\n" + text[0].text}
	var commands strings.Builder
	for _, c := range p.Subcommands {
		commands.WriteString(fmt.Sprintf("- `%s`: %s\n", c.Name, c.Usage))
	}
	all := []helpPart{{"Synopsis", "    " + p.name + " " + arguments}, text[0]}
	if commands.Len() > 0 {
		all = append(all, helpPart{"Commands", commands.String()})
	}
	return slices.Concat(all, grouped(p.shown(options), optionGroups[p.name]), text[1:])
}

// shown returns the options of the topic's part.
func (p *topic) shown(options []*described) []*described {
	i := slices.IndexFunc(optionGroups[p.name], func(g optionGroup) bool { return g.title == bootTitle })
	if i < 0 || p.options == allOptions {
		return options
	}
	own := optionGroups[p.name][i].names
	return slices.DeleteFunc(options, func(o *described) bool {
		switch {
		case p.options == optionsBoot:
			return slices.Contains(conflicts["boot"], o.name) || slices.Contains(notBooting, o.name)
		case o.name == "boot":
			o.usage += " (--boot --help shows its options)"
			return false
		}
		return slices.Contains(own, o.name)
	})
}

// notBooting are the options about reports that say nothing with --boot.
var notBooting = []string{"format", "summary", "source-root"}

// optionGroup is options that belong together.
type optionGroup struct {
	title string
	names []string
}

// optionsTitle is the title of a command's options. If some are in groups, otherOptions is the title of the rest.
const optionsTitle, otherOptions = "Options", "Other options"

// optionGroups are the groups of options of the commands that have many.
var optionGroups = map[string][]optionGroup{
	"btfgen check": {
		{"Options for kernels", []string{"btf", "select", "exclude", "without-btf", "as", "modules", "no-kernel-btf"}},
		{"Options for how the loader treats objects, better kept in btfgen.yaml",
			[]string{"loader", "optional", "one-of", "when", "no-guess", "loader-map", "tail-called", "target", "types", "rodata-var"}},
		{"Options for what must work", []string{"require", "baseline", "fail-on"}},
		{"Options for output", []string{"format", "json", "output", "summary", "source-root", "verbose", "quiet", "color"}},
		{bootTitle, []string{"boot", "archive", "command", "timeout", "btfgen", "catalogue", "mirror"}},
	},
}

// grouped returns a section for each group of options, then one for those that are in no group.
func grouped(options []*described, groups []optionGroup) (all []helpPart) {
	rest := slices.Clone(options)
	last := optionGroup{title: optionsTitle}
	if len(groups) > 0 {
		last.title = otherOptions
	}
	for _, g := range append(slices.Clip(groups), last) {
		var b strings.Builder
		rest = slices.DeleteFunc(rest, func(o *described) bool {
			if g.names != nil && !slices.Contains(g.names, o.name) {
				return false
			}
			b.WriteString(fmt.Sprintf("- `%s`: %s\n", o.typed, o.usage))
			return true
		})
		if b.Len() > 0 {
			all = append(all, helpPart{g.title, b.String()})
		}
	}
	return all
}

// described is what a topic says about an option.
type described struct {
	name  string // long name: output
	typed string // all spellings: -o, --output OUT
	value string // placeholder: OUT; empty if the option takes no value
	usage string
}

// describeAll describes the options of a command.
func describeAll(c *cli.Command) (all []*described) {
	for _, f := range c.Flags {
		if b, ok := f.(*cli.BoolFlag); !ok || !b.Hidden {
			all = append(all, describe(f))
		}
	}
	return all
}

// describe describes an option. The value's placeholder is in backquotes in its usage, as in package flag.
func describe(f cli.Flag) *described {
	d := f.(cli.DocGenerationFlag)
	o := &described{name: f.Names()[0], usage: d.GetUsage()}
	for _, n := range f.Names() {
		if len(n) == 1 {
			o.typed = "-" + n + ", " + o.typed
		} else {
			o.typed += "--" + n
		}
	}
	if parts := strings.Split(o.usage, "`"); len(parts) == 3 {
		o.value, o.usage = parts[1], strings.Join(parts, "")
		o.typed += " " + o.value
	}
	if def := d.GetDefaultText(); def != "" && d.TakesValue() && d.GetValue() != "" {
		o.usage += " (default: " + strings.Trim(def, `"`) + ")"
	}
	return o
}

// helpWidth is the width of a terminal in characters.
const helpWidth = 80

// printHelp prints a topic as plain text.
func printHelp(w io.Writer, p topic) {
	for _, s := range p.sections() {
		switch s.title {
		case "Synopsis":
			escape.Fprintf(w, "Usage: %s\n", strings.TrimSpace(s.text))
			continue
		case "Description":
		default:
			escape.Fprintf(w, "\n%s:\n", s.title)
		}
		for i, block := range blocks(s.text) {
			if i > 0 || s.title == "Description" {
				escape.Fprintf(w, "\n")
			}
			switch block = strings.ReplaceAll(block, "`", ""); {
			case block[0] == ' ':
			case strings.HasPrefix(block, "- "):
				rows := strings.Split(block, "\n")
				for i := range rows {
					rows[i] = row(listItem(rows[i]))
				}
				block = strings.Join(rows, "\n")
			default:
				block = wrapped(block, 0)
			}
			escape.Fprintf(w, "%s\n", escape.Own(block))
		}
	}
	if isGroup(p.Command) {
		escape.Fprintf(w, "\nRun '%s COMMAND --help' for the options of a command.\n", p.name)
	}
}

// row returns a term and its meaning in two columns.
func row(term, meaning string) string {
	const column = 26
	line := fmt.Sprintf("  %-*s", column-2, term)
	if len(term) > column-4 { // two spaces on either side
		line = strings.TrimRight(line, " ") + "\n" + strings.Repeat(" ", column)
	}
	return line + wrapped(meaning, column)
}

// wrapped breaks text between words. Lines after the first are indented, and the first begins there, too.
func wrapped(text string, indent int) string {
	var b strings.Builder
	width := indent
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case width+1+n > helpWidth:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			width = indent
		default:
			b.WriteByte(' ')
			width++
		}
		b.WriteString(word)
		width += n
	}
	return b.String()
}
