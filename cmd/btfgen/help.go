// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/text/escape"
)

// helpWidth is the width in characters of what help prints: a terminal's, without a pager.
const helpWidth = 80

// printHelp prints what the program, a group of commands or a command is for.
func printHelp(w io.Writer, app *cli.App, commands []*cli.Command) {
	name := strings.Join(append([]string{app.Name}, names(commands)...), " ")
	if len(commands) == 0 {
		printGroup(w, name, app.Usage, app.Commands)
		return
	}
	c := commands[len(commands)-1]
	if len(c.Subcommands) > 0 {
		printGroup(w, name, c.Usage, c.Subcommands)
		return
	}
	ours(w, "%s\n\n", wrapped(name+": "+c.Usage, 0))
	ours(w, "%s\n", wrapped("    "+name+" "+synopsis(c), 8))
	for _, p := range paragraphs(c.Description) {
		ours(w, "%s\n", p)
	}
	for i, o := range options(c) {
		if i == 0 {
			ours(w, "\nOptions:\n\n")
		}
		ours(w, "%s\n", row(o.typed(), o.usage))
	}
}

// synopsis is what goes behind a command's name.
func synopsis(c *cli.Command) string {
	if len(options(c)) == 0 {
		return c.ArgsUsage
	}
	return "[options] " + c.ArgsUsage
}

// options are those of a command that are for users.
func options(c *cli.Command) (all []*described) {
	for _, f := range c.Flags {
		if o := describe(f); o != nil {
			all = append(all, o)
		}
	}
	return all
}

// ours prints what is all ours, line breaks too.
func ours(w io.Writer, format string, args ...any) {
	escape.Fprintf(w, "%s", escape.Own(fmt.Sprintf(format, args...)))
}

// printGroup prints what commands there are.
func printGroup(w io.Writer, name, usage string, commands []*cli.Command) {
	ours(w, "%s\n\n    %s COMMAND [options] ARGUMENT...\n\nCommands:\n\n", wrapped(name+": "+usage, 0), name)
	for _, c := range commands {
		ours(w, "%s\n", row(c.Name, c.Usage))
	}
	ours(w, "\n'%s COMMAND --help' tells more of a command.\n", name)
}

// described is what help and the reference tell of an option.
type described struct {
	names        []string // as they are typed
	value, usage string   // value is empty for an option that takes none
}

// describe returns nil for an option that is not for users.
func describe(f cli.Flag) *described {
	d, ok := f.(cli.DocGenerationFlag)
	if v, hidden := f.(cli.VisibleFlag); !ok || hidden && !v.IsVisible() {
		return nil
	}
	o := &described{usage: d.GetUsage()}
	for _, n := range f.Names() {
		if len(n) == 1 {
			n = "-" + n
		} else {
			n = "--" + n
		}
		o.names = append(o.names, n)
	}
	if before, rest, ok := strings.Cut(o.usage, "`"); ok {
		if value, after, ok := strings.Cut(rest, "`"); ok {
			o.value, o.usage = value, before+value+after
		}
	}
	if v := variables[f.Names()[0]]; v != "" {
		o.usage += "; also $" + v
	}
	if def := d.GetDefaultText(); def != "" && d.TakesValue() && d.GetValue() != "" {
		o.usage += " (default: " + strings.Trim(def, `"`) + ")"
	}
	return o
}

// typed is the option as it is typed: "-o, --output OUT".
func (o *described) typed() string {
	text := strings.Join(append(o.names[1:len(o.names):len(o.names)], o.names[0]), ", ")
	if o.value != "" {
		text += " " + o.value
	}
	return text
}

// row is a name and what it means, in two columns.
func row(name, meaning string) string {
	const indent, column = 2, 24
	name = strings.Repeat(" ", indent) + name
	if len(name) > column-2 {
		return name + "\n" + wrapped(strings.Repeat(" ", column)+meaning, column)
	}
	return wrapped(fmt.Sprintf("%-*s%s", column, name, meaning), column)
}

// paragraphs wraps a description, whose lines are broken where they were written. Those that begin with a
// space are tables, whose last column is wrapped.
func paragraphs(text string) (all []string) {
	run := ""
	end := func() {
		if run != "" {
			all = append(all, "", wrapped(run, 0))
			run = ""
		}
	}
	table := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case line == "":
			end()
			table = false
		case line[0] != ' ':
			run = strings.TrimPrefix(run+" "+line, " ")
			table = false
		default:
			end()
			if !table {
				all = append(all, "")
			}
			table = true
			all = append(all, wrapped(line, max(strings.LastIndex(line, "  ")+2, 0)))
		}
	}
	end()
	return all
}

// wrapped breaks text at spaces. Lines after the first are indented.
func wrapped(text string, indent int) string {
	var b strings.Builder
	for utf8.RuneCountInString(text) > helpWidth {
		cut := strings.LastIndexByte(text[:helpWidth+1], ' ')
		if cut <= indent {
			break
		}
		b.WriteString(strings.TrimRight(text[:cut], " ") + "\n")
		text = strings.Repeat(" ", indent) + text[cut+1:]
	}
	return b.String() + text
}
