// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/cmd/btfgen/config"
	"github.com/btfgen/btfgen/internal/text/escape"
)

// configFile is the file that is read if it is there.
const configFile = "btfgen.yaml"

// variables are the environment variables that stand for options, by the option's name.
var variables = map[string]string{
	"btf":    "BTFGEN_BTF",
	"color":  "BTFGEN_COLOR",
	"config": "BTFGEN_CONFIG",
	"jobs":   "BTFGEN_JOBS",
	"xz":     "BTFGEN_XZ",
}

func configFlag() cli.Flag {
	return &cli.StringFlag{Name: "config", Usage: "options and arguments are in `FILE`, '' being none (default: " + configFile + " if it is there)"}
}

// excludes has options that leave no room for others. One that is typed does without what a file or the
// environment says of them.
var excludes = map[string][]string{
	"json":       {"verbose", "format", "min-kernel", "color"},
	"format":     {"json", "min-kernel"},
	"verbose":    {"json", "quiet"},
	"min-kernel": {"json", "format"},
	"quiet":      {"verbose"},
	"diff":       {"format", "json", "min-kernel", "baseline", "require"},
}

// settle adds what was not typed: options from the environment, then options and arguments from a file.
func (l *commandLine) settle() error {
	if l.flag("config") == nil {
		return nil
	}
	typed := make(map[string]bool)
	for _, o := range l.options {
		typed[o.name()] = true
		for _, e := range excludes[o.name()] {
			typed[e] = true
		}
	}
	for _, f := range l.last().Flags {
		name := f.Names()[0]
		value, ok := os.LookupEnv(variables[name])
		if typed[name] || !ok || value == "" && name != "config" {
			continue
		}
		typed[name] = true
		values := []string{value}
		if repeats(f) {
			values = filepath.SplitList(value)
		}
		for _, v := range values {
			if err := l.add(f, variables[name], v); err != nil {
				return err
			}
		}
	}
	file, err := l.readConfig()
	if file == nil || err != nil {
		return err
	}
	return l.configure(file, typed)
}

// readConfig reads the file of --config, or else the one that is there, if any.
func (l *commandLine) readConfig() (*config.File, error) {
	path, given := l.value("config")
	if _, err := os.Lstat(configFile); !given && !errors.Is(err, fs.ErrNotExist) {
		path = configFile
	}
	if path == "" {
		return nil, nil
	}
	l.config = path
	file, err := config.Read(path, configurable(nil, l.all))
	if err != nil {
		return nil, usageError{err}
	}
	return file, nil
}

// value returns the value of an option that counts.
func (l *commandLine) value(name string) (value string, given bool) {
	for _, o := range slices.Backward(l.options) {
		if o.name() == name {
			return o.value, true
		}
	}
	return "", false
}

// configure adds options and arguments of a file.
func (l *commandLine) configure(file *config.File, typed map[string]bool) error {
	values := file.Values(names(l.commands)...)
	given := l.options
	l.options = nil
	for _, f := range l.last().Flags {
		name := f.Names()[0]
		if typed[name] {
			continue
		}
		set, ok := values[name]
		if ok && isList(f) {
			set = []config.Value{listValue(set, l.config)}
		}
		for _, v := range set {
			if err := l.add(f, v.Pos, v.Text); err != nil {
				return err
			}
		}
	}
	l.options = append(l.options, given...)
	typedArgs := l.args
	l.args = nil
	for _, a := range arguments(l.last()) {
		here := 1
		if a.Repeats {
			here = len(typedArgs)
		}
		here = min(here, len(typedArgs))
		l.args = append(l.args, typedArgs[:here]...)
		typedArgs = typedArgs[here:]
		if here > 0 {
			continue
		}
		if len(values[a.Name]) == 0 && !a.Repeats {
			break // what comes next would be taken for it
		}
		for _, v := range values[a.Name] {
			l.args = append(l.args, v.Text)
			l.configured++
		}
	}
	l.args = append(l.args, typedArgs...)
	return nil
}

// tellSettled prints what was not typed, as it would be.
func (l *commandLine) tellSettled(w io.Writer) {
	var words, from []string
	for _, o := range l.options {
		if strings.HasPrefix(o.typed, "-") {
			continue
		}
		place := l.config
		if o.typed == variables[o.name()] {
			place = "$" + o.typed
		}
		if !slices.Contains(from, place) {
			from = append(from, place)
		}
		word := "--" + o.name()
		if takesValue(o.flag) || o.value != "true" {
			word += "=" + o.value
		}
		words = append(words, quoted(word))
	}
	if l.configured > 0 && !slices.Contains(from, l.config) {
		from = append(from, l.config)
	}
	for _, a := range l.args[len(l.args)-l.configured:] {
		words = append(words, quoted(a))
	}
	if len(words) > 0 {
		escape.Fprintf(w, "from %s: %s\n", strings.Join(from, " and "), strings.Join(words, " "))
	}
}

// quoted is a word as a shell takes it.
func quoted(word string) string {
	special := func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("-_=./:,@%+", c)
	}
	if word != "" && !strings.ContainsFunc(word, special) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// placed adds to a message that begins with an option where that comes from, if it was not typed.
func (l *commandLine) placed(err error) error {
	text, ok := strings.CutPrefix(err.Error(), "--")
	if !ok {
		return err
	}
	name := text[:len(text)-len(strings.TrimLeft(text, "abcdefghijklmnopqrstuvwxyz-"))]
	place, longest := "", 0 // of several the one that the message repeats
	for _, o := range l.options {
		if o.name() == name && !strings.HasPrefix(o.typed, "-") && (place == "" || len(o.value) > longest && strings.Contains(text, o.value)) {
			place, longest = o.typed, len(o.value)
		}
	}
	if place == "" {
		return err
	}
	return usagef("%s: %w", place, err)
}

// configurable describes commands for package config.
func configurable(prefix []string, among []*cli.Command) (all []config.Command) {
	for _, c := range among {
		name := append(prefix[:len(prefix):len(prefix)], c.Name)
		if len(c.Subcommands) > 0 {
			all = append(all, configurable(name, c.Subcommands)...)
			continue
		}
		if !slices.ContainsFunc(c.Flags, func(f cli.Flag) bool { return f.Names()[0] == "config" }) {
			continue
		}
		own := config.Command{Name: name}
		for _, f := range c.Flags {
			if o := describe(f); o != nil && f.Names()[0] != "config" {
				own.Keys = append(own.Keys, config.Key{Name: f.Names()[0], Kind: kindOf(f), Repeats: repeats(f) || isList(f), Path: isPath(o.value)})
			}
		}
		own.Keys = append(own.Keys, arguments(c)...)
		all = append(all, own)
	}
	return all
}

// arguments are the arguments of a command, as keys: objects for OBJECT..., archive for ARCHIVE, btf for SOURCE.
func arguments(c *cli.Command) (all []config.Key) {
	for word := range strings.FieldsSeq(c.ArgsUsage) {
		word = strings.TrimSuffix(word, "]")
		word = word[strings.LastIndexAny(word, "[]=")+1:] // as in [MACHINE=]OBJECT...
		name, repeats := strings.CutSuffix(word, "...")
		k := config.Key{Name: strings.ToLower(name), Repeats: repeats, Path: isPath(name)}
		switch {
		case name == "SOURCE":
			k.Name = "btf" // as for the commands that have --btf
		case repeats:
			k.Name += "s"
		}
		all = append(all, k)
	}
	return all
}

// isPath says whether a value is the name of a file, by what stands for it.
func isPath(placeholder string) bool {
	return slices.Contains([]string{"FILE", "DIR", "OUT", "SOURCE", "OLD.btfa", "OBJECT", "ARCHIVE", "INPUT", "OUTPUT", "PACKAGE"}, placeholder)
}

func repeats(f cli.Flag) bool {
	_, ok := f.(*cli.StringSliceFlag)
	return ok
}

// isList says whether the value of an option is a list with commas.
func isList(f cli.Flag) bool {
	o := describe(f)
	return o != nil && o.value == "LIST"
}

// listValue makes one value of those of a list in a file.
func listValue(values []config.Value, file string) config.Value {
	if len(values) == 0 {
		return config.Value{Text: noClass, Pos: file}
	}
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = v.Text
	}
	return config.Value{Text: strings.Join(texts, ","), Pos: values[0].Pos}
}

func kindOf(f cli.Flag) config.Kind {
	switch f.(type) {
	case *cli.BoolFlag:
		return config.Bool
	case *cli.IntFlag:
		return config.Number
	}
	return config.Text
}
