// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/text/suggest"
)

// commandLine is what was typed, taken apart. The library gets it in a form in which nothing is left to
// misunderstand: by itself it takes options behind the first argument for arguments, prints mistakes on standard
// output, and repeats options otherwise than they were typed.
type commandLine struct {
	commands []*cli.Command // that it names, the outermost first
	help     bool
	version  bool
	options  []option
	args     []string

	all        []*cli.Command // that there are
	config     string         // file that was read, or ""
	configured int            // how many of the arguments, the last ones, come from it
}

// option is an option of the command and its value.
type option struct {
	flag  cli.Flag
	value string
	typed string // as it was written, for messages
}

// name is what the option is called, whatever short form was typed.
func (o *option) name() string { return o.flag.Names()[0] }

// parseArgs takes a command line apart. Options may stand before and after arguments; what follows "--" is
// never an option.
func parseArgs(app *cli.App, args []string) (*commandLine, error) {
	l := &commandLine{all: app.Commands}
	rest, err := l.command(app, args)
	if err != nil || l.help || l.version {
		return l, err
	}
	return l, l.leaf(rest)
}

// command reads the names of commands, and what may stand in their place.
func (l *commandLine) command(app *cli.App, args []string) (rest []string, err error) {
	among := app.Commands
	for len(among) > 0 {
		if len(args) == 0 {
			if l.help {
				return nil, nil
			}
			return nil, l.incomplete(among)
		}
		a := args[0]
		args = args[1:]
		top := len(l.commands) == 0
		switch c := find(among, a); {
		case c != nil:
			l.commands = append(l.commands, c)
			among = c.Subcommands
		case isHelp(a):
			l.help = true
		case top && !l.help && slices.Contains([]string{"version", "--version", "-version", "-v"}, a):
			l.version = true
			return nil, nil
		case strings.HasPrefix(a, "-"):
			return nil, usagef("%s: options stand behind the command", a)
		default:
			return nil, usagef("%sunknown command %q%s", l.prefix(), a, meant(suggest.Word(a, names(among))))
		}
	}
	if l.help && len(args) > 0 && !isHelp(args[0]) {
		return nil, usagef("%shas no command %q", l.prefix(), args[0])
	}
	return args, nil
}

// isHelp says whether a word asks for help, where it can be no argument.
func isHelp(a string) bool {
	return slices.Contains([]string{"help", "h", "--help", "-help", "-h"}, a)
}

func (l *commandLine) last() *cli.Command { return l.commands[len(l.commands)-1] }

// prefix is the command's name as messages begin with it.
func (l *commandLine) prefix() string {
	if len(l.commands) == 0 {
		return ""
	}
	return strings.Join(names(l.commands), " ") + ": "
}

// incomplete says what is missing.
func (l *commandLine) incomplete(among []*cli.Command) error {
	if len(l.commands) == 0 {
		return usagef("no command given")
	}
	return usagef("%s needs a command: %s", l.last().Name, listOr(names(among)))
}

func names(cmds []*cli.Command) []string {
	all := make([]string, len(cmds))
	for i, c := range cmds {
		all[i] = c.Name
	}
	return all
}

func find(cmds []*cli.Command, name string) *cli.Command {
	for _, c := range cmds {
		if c.HasName(name) {
			return c
		}
	}
	return nil
}

// meant is the end of a message about a word that is unknown.
func meant(word string) string {
	if word == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", word)
}

// leaf reads the options and arguments of a command.
func (l *commandLine) leaf(args []string) error {
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		switch {
		case a == "--":
			l.args = append(l.args, args...)
			return nil
		case len(a) < 2 || a[0] != '-':
			l.args = append(l.args, a)
			continue
		case isHelp(a):
			l.help = true
			return nil
		}
		used, err := l.option(a, args)
		if err != nil {
			return err
		}
		args = args[used:]
	}
	return nil
}

// option reads an argument with an option, or with several short ones, and says how many of the next
// arguments are its value.
func (l *commandLine) option(a string, next []string) (used int, err error) {
	name, value, given := strings.Cut(strings.TrimPrefix(a[1:], "-"), "=")
	if f := l.flag(name); f != nil && (len(name) > 1 || given) {
		typed := strings.TrimSuffix(a, "="+value)
		switch {
		case given:
		case !takesValue(f):
			value = "true"
		case len(next) == 0:
			return 0, usagef("%s needs a value", a)
		default:
			value, used = next[0], 1
		}
		return used, l.add(f, typed, value)
	}
	if strings.HasPrefix(a, "--") {
		return 0, l.unknown(a, name)
	}
	return l.short(a, next)
}

// short reads one-letter options together, of which the last may have a value: -vj4.
func (l *commandLine) short(a string, next []string) (used int, err error) {
	name, _, _ := strings.Cut(a[1:], "=")
	if len(name) > 3 && suggest.Word(name, l.long()) != "" {
		return 0, l.unknown(a, name) // -ouput is not -o uput
	}
	for i := 1; i < len(a); i++ {
		f := l.flag(a[i : i+1])
		typed, value := "-"+a[i:i+1], strings.TrimPrefix(a[i+1:], "=")
		switch {
		case f == nil:
			if i > 1 {
				return 0, usagef("unknown option -%c in %s", a[i], a)
			}
			return 0, l.unknown(a, name)
		case !takesValue(f):
			if err := l.add(f, typed, "true"); err != nil {
				return 0, err
			}
			continue
		case value == "" && len(next) == 0:
			return 0, usagef("%s needs a value", typed)
		case value == "":
			value, used = next[0], 1
		}
		return used, l.add(f, typed, value)
	}
	return 0, nil
}

func (l *commandLine) unknown(typed, name string) error {
	typed, _, _ = strings.Cut(typed, "=")
	word := suggest.Word(name, l.long())
	if word != "" {
		word = "--" + word
	}
	return usagef("unknown option %s%s", typed, meant(word))
}

// long returns the long names of the command's options.
func (l *commandLine) long() (all []string) {
	for _, f := range l.last().Flags {
		if v, ok := f.(cli.VisibleFlag); ok && v.IsVisible() {
			all = append(all, f.Names()[0])
		}
	}
	return append(all, "help")
}

func (l *commandLine) flag(name string) cli.Flag {
	for _, f := range l.last().Flags {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

func takesValue(f cli.Flag) bool {
	d, ok := f.(cli.DocGenerationFlag)
	return ok && d.TakesValue()
}

// add adds an option if the library will understand its value.
func (l *commandLine) add(f cli.Flag, typed, value string) error {
	switch f.(type) {
	case *cli.IntFlag:
		if _, err := strconv.Atoi(value); err != nil {
			return usagef("%s %q: want a number", typed, value)
		}
	case *cli.BoolFlag:
		if _, err := strconv.ParseBool(value); err != nil {
			return usagef("%s=%s: want true or false, or nothing", typed, value)
		}
	}
	l.options = append(l.options, option{f, value, typed})
	return nil
}

// canonical returns the command line as the library understands it.
func (l *commandLine) canonical() []string {
	all := names(l.commands)
	for _, o := range l.options {
		all = append(all, "--"+o.name()+"="+o.value)
	}
	return append(append(all, "--"), l.args...)
}
