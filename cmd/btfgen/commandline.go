// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/text/suggest"
)

// commandLine is a parsed command line.
//
// urfave/cli holds the table of commands and options, and runs a command with its values. It does not parse what the
// user typed: it stops at the first argument and silently ignores the options after it, prints usage errors to standard
// output, and has no suggestions. So parse reads the words, and canonical writes them in a form in which the library
// finds one option per word, then "--", then the arguments.
type commandLine struct {
	command *cli.Command // command named by the words, else btfgen itself
	path    string       // name of the command, as in "archive list"
	help    bool
	version bool
	options []option
	args    []string

	pending cli.Flag // option that is the last word, without its value
}

// option is an option or an argument with its value.
type option struct {
	flag  cli.Flag // nil for an argument
	value string
	from  string // option as typed, or its place in the file

	refused error // why a file that the user did not name may not set it; nil if it may
}

func (o *option) name() string { return o.flag.Names()[0] }
func (o *option) typed() bool  { return strings.HasPrefix(o.from, "-") }

// String returns the option as in a message.
func (o *option) String() string {
	text := "--" + o.name()
	if takesValue(o.flag) {
		text += " " + o.value
	}
	if !o.typed() {
		text += " (" + o.from + ")"
	}
	return text
}

// root returns btfgen itself as a command.
func root(app *cli.App) *cli.Command {
	return &cli.Command{Name: app.Name, Usage: app.Usage, Subcommands: app.Commands}
}

// isGroup reports whether a command only has others below it.
func isGroup(c *cli.Command) bool { return len(c.Subcommands) > 0 }

// parse reads a command line. Options may follow arguments.
func parse(app *cli.App, words []string) (*commandLine, error) {
	l := &commandLine{command: root(app)}
	words = l.descend(words)
	where := ""
	if l.path != "" {
		where = l.path + ": "
	}
	group := isGroup(l.command)
	switch {
	case l.help && len(words) == 0:
		return l, nil
	case l.help && !group:
		return l, usagef("%shas no command %q", where, words[0])
	case !group:
		return l, l.read(words)
	case len(words) == 0 && l.path == "":
		return l, usagef("no command given")
	case len(words) == 0:
		return l, usagef("%s needs a command: %s", l.path, listOr(names(l.command.Subcommands)))
	case l.path == "" && slices.Contains([]string{"version", "--version", "-version", "-v"}, words[0]):
		l.version = true
		return l, nil
	case strings.HasPrefix(words[0], "-"):
		return l, usagef("%s: options follow the command", words[0])
	}
	// bpftool calls min_core_btf by two words.
	if l.path == "" && len(words) > 1 && words[0] == "gen" && words[1] == "min_core_btf" {
		return l, usagef("unknown command %q: the command is 'btfgen min_core_btf INPUT OUTPUT OBJECT...'", words[0])
	}
	if now := renamed[strings.TrimSpace(l.path+" "+words[0])]; now != "" {
		return l, usagef("%sunknown command %q: the command is '%s'", where, words[0], now)
	}
	return l, usagef("%sunknown command %q%s", where, words[0], didYouMean("", words[0], names(l.command.Subcommands)))
}

// renamed has the commands and options of earlier versions, and what to type instead.
var renamed = map[string]string{
	"check --min-kernel": "--format min-kernel",
	"check --suggest":    "--format suggest",

	"archive merge":   "btfgen archive convert ARCHIVE... -o OUT",
	"archive extract": "btfgen archive convert ARCHIVE [--select KEY] -o DIR/ or FILE.btf",
}

// descend follows the names of commands and requests for help. It returns the words after these.
func (l *commandLine) descend(words []string) []string {
	for i, w := range words {
		at := slices.IndexFunc(l.command.Subcommands, func(c *cli.Command) bool { return c.HasName(w) })
		switch {
		case at >= 0:
			l.command = l.command.Subcommands[at]
			l.path = strings.TrimSpace(l.path + " " + w)
		case isGroup(l.command) && isHelp(w):
			l.help = true
		default:
			return words[i:]
		}
	}
	return nil
}

func isHelp(word string) bool {
	return slices.Contains([]string{"help", "h", "--help", "-help", "-h"}, word)
}

func names(commands []*cli.Command) []string {
	all := make([]string, len(commands))
	for i, c := range commands {
		all[i] = c.Name
	}
	return all
}

// listOr returns "a, b or c".
func listOr(words []string) string {
	n := len(words) - 1
	return strings.Join(words[:n], ", ") + " or " + words[n]
}

// didYouMean returns the end of a message about an unknown word.
func didYouMean(prefix, word string, known []string) string {
	if s := suggest.Word(word, known); s != "" {
		return fmt.Sprintf(" (did you mean %s?)", prefix+s)
	}
	return ""
}

// read reads the options and arguments of a command. It goes on after an error, for completion, and returns the first.
func (l *commandLine) read(words []string) (err error) {
	for len(words) > 0 {
		w := words[0]
		words = words[1:]
		switch {
		case w == "--":
			l.args = append(l.args, words...)
			return err
		case len(w) < 2 || w[0] != '-':
			l.args = append(l.args, w)
		case isHelp(w):
			l.help = true
			return nil
		default:
			f := l.flag(strings.TrimLeft(w, "-"))
			helpNext := len(words) > 0 && words[0] != "h" && words[0] != "help" && isHelp(words[0])
			if f != nil && takesValue(f) && helpNext {
				l.pending, l.help = f, true // --boot --help
				return nil
			}
			used, optionErr := l.option(w, words)
			err = cmp.Or(err, optionErr)
			words = words[used:]
		}
	}
	return err
}

// option reads a word with an option. It returns how many of the next words are its value.
func (l *commandLine) option(word string, next []string) (used int, err error) {
	name, value, hasValue := strings.Cut(strings.TrimPrefix(word[1:], "-"), "=")
	typed, _, _ := strings.Cut(word, "=")
	f := l.flag(name)
	hint := didYouMean("--", name, l.long())
	// A short option may be joined with its value: -j4. But -ouput is a typing error, not -o uput.
	if short := l.flag(word[1:2]); f == nil && short != nil && takesValue(short) && (len(name) <= 3 || hint == "") {
		f, typed, value, hasValue = short, word[:2], word[2:], true
	}
	switch {
	case f == nil && renamed[l.path+" --"+name] != "":
		return 0, usagef("unknown option %s: the option is %s", typed, renamed[l.path+" --"+name])
	case f == nil:
		return 0, usagef("unknown option %s%s", typed, hint)
	case hasValue:
	case !takesValue(f):
		value = "true"
	case len(next) == 0:
		l.pending = f
		return 0, usagef("%s needs a value", typed)
	default:
		value, used = next[0], 1
	}
	return used, l.add(f, value, typed)
}

// flag returns the option of the command with a name, or nil.
func (l *commandLine) flag(name string) cli.Flag {
	for _, f := range l.command.Flags {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

// long returns the long names of the options.
func (l *commandLine) long() (all []string) {
	for _, o := range describeAll(l.command) {
		all = append(all, o.name)
	}
	return all
}

// add adds an option if its value is valid. from is as in option.
func (l *commandLine) add(f cli.Flag, value, from string) error {
	o := option{flag: f, value: value, from: from}
	if err := checkValue(f, value); err != nil {
		return usageError{&optionError{o.name(), &value, from, err}}
	}
	l.options = append(l.options, o)
	return nil
}

// value returns the value of an option, and whether it was given.
func (l *commandLine) value(name string) (value string, ok bool) {
	for _, o := range slices.Backward(l.options) {
		if o.name() == name {
			return o.value, true
		}
	}
	return "", false
}

// canonical returns the command line for urfave/cli.
func (l *commandLine) canonical() []string {
	all := strings.Fields(l.path)
	for _, o := range l.options {
		all = append(all, "--"+o.name()+"="+o.value)
	}
	return append(append(all, "--"), l.args...)
}

// conflicts lists the options that an option does not go with, some only for one command. A typed one removes the others from
// the file.
var conflicts = map[string][]string{
	"json":         {"format"},
	"quiet":        {"verbose"},
	"brief":        {"verbose"},
	"relolog json": {"verbose", "color"},
	"verify json":  {"verbose"},
	// Options about other reports and kernels, then those about whole objects.
	"boot": {"select", "exclude", "without-btf", "require", "baseline",
		"loader", "optional", "one-of", "loader-map", "no-guess", "no-kernel-btf"},
}

// excludes reports whether conflicts says that an option does not go with another.
func (l *commandLine) excludes(name, other string) bool {
	return slices.Contains(conflicts[name], other) || slices.Contains(conflicts[l.path+" "+name], other)
}

// configure adds the options and arguments of a file that were not typed.
func (l *commandLine) configure(app *cli.App) error {
	if l.flag("config") == nil {
		return nil
	}
	path, named := l.findConfig()
	if path == "" {
		return nil
	}
	values, err := readConfig(path, named, root(app), l)
	if err != nil {
		return usageError{err}
	}
	var refused []error
	typed := slices.Clone(l.options)
	_, boot := l.value("boot")
	for _, k := range keys(l.command) {
		// --boot has few formats, and boots other kernels than those of --btf.
		forOthers := boot && (k.name == "format" || k.name == "btf")
		overridden := slices.ContainsFunc(typed, func(o option) bool {
			return o.name() == k.name || l.excludes(o.name(), k.name) || l.excludes(k.name, o.name())
		})
		if k.flag == nil || forOthers || overridden {
			continue
		}
		for _, v := range values[k.name] {
			refused = append(refused, v.refused)
			// It fails if the value of a common key is for other commands only.
			if err := l.add(k.flag, v.value, v.from); err != nil {
				return err
			}
		}
	}
	if err := errors.Join(append(refused, l.addArguments(values)...)...); err != nil {
		return usageError{err}
	}
	return nil
}

// refuseConflicts returns an error about options that do not go together.
func (l *commandLine) refuseConflicts() error {
	for _, o := range l.options {
		for _, other := range l.options {
			if l.excludes(o.name(), other.name()) && o.value != "false" && other.value != "false" {
				return usagef("%v does not go with %v", &o, &other)
			}
		}
	}
	return nil
}

// addArguments adds the arguments that were not typed. It returns why the file may not set some of them.
func (l *commandLine) addArguments(values map[string][]option) (refused []error) {
	typed := l.args
	l.args = nil
	for _, k := range argumentKeys(l.command) {
		n := min(len(typed), 1)
		if k.repeats {
			n = len(typed)
		}
		l.args = append(l.args, typed[:n]...)
		typed = typed[n:]
		if n > 0 {
			continue
		}
		for _, v := range values[k.name] {
			refused = append(refused, v.refused)
			l.args = append(l.args, v.value)
		}
		if len(values[k.name]) == 0 && !k.repeats {
			break // the next argument would take the place of this one
		}
	}
	l.args = append(l.args, typed...)
	return refused
}
