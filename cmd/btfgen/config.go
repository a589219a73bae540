// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/urfave/cli/v2"
	"go.yaml.in/yaml/v3"

	"github.com/btfgen/btfgen/internal/bpfobj/machine"
	"github.com/btfgen/btfgen/internal/limits"
)

// configFile is the file with options and arguments that is read from the working directory if it exists:
//
//	btf: kernels/              for every command that has --btf
//	objects: [tracer.bpf.o]
//	generate:                  for one command
//	  output: tracer.btfa
//	archive:
//	  lookup:                  for one command of a group
//	    archive: tracer.btfa
//
// The file is outside data. Its size is bounded, and its nesting is that of the commands. Aliases, several documents, and
// unknown or repeated keys are errors. Errors begin with file:line:column.
const configFile = "btfgen.yaml"

// key is an option or argument of a command, as the file names it.
type key struct {
	name    string
	flag    cli.Flag // nil for an argument
	repeats bool     // the value is one text or a list of them
	list    bool     // the list is one value, with commas
	path    bool     // the value is relative to the folder of the file
}

// common reports whether a key can apply to all commands. The name of a single file cannot.
func (k key) common() bool { return k.repeats || !k.path }

// keys returns the keys of a command: the options and, for instance, objects for OBJECT..., archive for ARCHIVE, and btf
// for SOURCE... Commands about btfgen itself have none.
func keys(c *cli.Command) (all []key) {
	configurable := false
	for _, f := range c.Flags {
		o := describe(f)
		switch {
		case o.name == "config":
			configurable = true
		case o.name == "help":
		default:
			list := o.value == "LIST"
			all = append(all, key{o.name, f, isRepeatable(f) || list, list, isPath(o.value)})
		}
	}
	if !configurable {
		return nil
	}
	return append(all, argumentKeys(c)...)
}

// argumentKeys returns the keys of the arguments of a command.
func argumentKeys(c *cli.Command) (all []key) {
	for word := range strings.FieldsSeq(c.ArgsUsage) {
		name, repeats := strings.CutSuffix(strings.Trim(word, "[]"), "...")
		k := key{name: strings.ToLower(name), repeats: repeats, path: isPath(name)}
		switch {
		case name == "SOURCE":
			k.name = "btf" // the key of commands with --btf
		case repeats:
			k.name = strings.TrimSuffix(k.name, "s") + "s"
		}
		all = append(all, k)
	}
	return all
}

// commonKeys returns the keys of all commands that can stand outside sections.
func commonKeys(c *cli.Command) []key {
	all := slices.DeleteFunc(keys(c), func(k key) bool { return !k.common() })
	for _, sub := range c.Subcommands {
		for _, k := range commonKeys(sub) {
			if !slices.ContainsFunc(all, func(o key) bool { return o.name == k.name }) {
				all = append(all, k)
			}
		}
	}
	return all
}

// isPath reports whether a placeholder is for the name of a file.
func isPath(placeholder string) bool {
	return slices.Contains([]string{
		"FILE", "DIR", "OUT", "SOURCE", "OLD.btfa", "OBJECT", "ARCHIVE", "OLD", "NEW", "INPUT", "OUTPUT", "PACKAGE",
	}, placeholder)
}

// configReader reads the file for one command. All mistakes in the file are errors, also those in other sections.
type configReader struct {
	path    string
	named   bool // the user named the file, and so trusts it
	command *cli.Command
	line    string // name of the command, as in "archive list"
	common  map[string][]option
	own     map[string][]option
	errs    []error
}

// readConfig returns the values that a file has for a command. Its section replaces common values; an empty list is none. Unless the user
// named the file, values that need the user's word have option.refused set.
func readConfig(path string, named bool, root *cli.Command, l *commandLine) (map[string][]option, error) {
	r := &configReader{path: path, named: named, command: l.command, line: l.path, common: make(map[string][]option)}
	if !named {
		if err := checkLinked(path); err != nil {
			return nil, err
		}
	}
	doc, err := parseYAML(path)
	if err != nil {
		return nil, err
	}
	if doc != nil {
		r.section(doc, root, commonKeys(root), r.common)
	}
	maps.Copy(r.common, r.own)
	return r.common, errors.Join(r.errs...)
}

// readRegular reads a file of a checkout.
func readRegular(path string, max int64) ([]byte, error) {
	if fi, err := os.Stat(path); err == nil && !fi.Mode().IsRegular() { // a pipe might never end
		return nil, fmt.Errorf("%s: not a regular file", path)
	}
	return limits.ReadFile(path, max)
}

// parseYAML returns the root of the only document in a file, or nil if there is none.
func parseYAML(path string) (*yaml.Node, error) {
	data, err := readRegular(path, limits.ConfigBytes)
	if err != nil {
		return nil, err
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, next yaml.Node
	err = dec.Decode(&doc)
	if err == io.EOF {
		return nil, nil
	}
	if err == nil {
		if err = dec.Decode(&next); err == nil {
			return nil, fmt.Errorf("%s:%d: a second document", path, next.Line)
		}
	}
	if err != io.EOF { // "yaml: line 3: text"; the package has no error with the line
		text := strings.TrimPrefix(err.Error(), "yaml: ")
		text, _, _ = strings.Cut(text, " '") // the text after " '" is from the file
		if line, rest, ok := strings.Cut(strings.TrimPrefix(text, "line "), ": "); ok && line != text {
			return nil, fmt.Errorf("%s:%s: %s", path, line, rest)
		}
		return nil, fmt.Errorf("%s: %s", path, text)
	}
	return doc.Content[0], nil
}

// failed records a mistake, up to a limit.
func (r *configReader) failed(n *yaml.Node, format string, args ...any) {
	if len(r.errs) < limits.Errors {
		r.errs = append(r.errs, fmt.Errorf("%s: %s", r.pos(n), fmt.Sprintf(format, args...)))
	}
}

func (r *configReader) pos(n *yaml.Node) string {
	return fmt.Sprintf("%s:%d:%d", r.path, n.Line, n.Column)
}

// section reads a mapping with the keys and subcommands of a command. It adds the values of the keys to values.
func (r *configReader) section(n *yaml.Node, c *cli.Command, known []key, values map[string][]option) {
	if n.ShortTag() == "!!null" {
		return
	}
	if n.Kind != yaml.MappingNode { // an alias, for instance
		r.failed(n, "want keys with values")
		return
	}
	words := names(slices.DeleteFunc(slices.Clone(c.Subcommands), func(c *cli.Command) bool {
		return !isGroup(c) && keys(c) == nil
	}))
	commands := len(words)
	for _, k := range known {
		words = append(words, k.name)
	}
	first := make(map[string]int) // line of each key
	for i := 0; i+1 < len(n.Content); i += 2 {
		at, value := n.Content[i], n.Content[i+1]
		index := slices.Index(words, at.Value)
		switch {
		case at.Kind != yaml.ScalarNode:
			r.failed(at, "a key must be a word")
		case first[at.Value] > 0:
			r.failed(at, "%s is already in line %d", cmp.Or(shownKey(at.Value), "a key"), first[at.Value])
		case index < 0 && renamed[c.Name+" "+at.Value] != "":
			r.failed(at, "unknown key %q: the command is '%s'", at.Value, renamed[c.Name+" "+at.Value])
		case index < 0 && renamed[c.Name+" --"+at.Value] != "":
			r.failed(at, "unknown key %q: the option is %s", at.Value, renamed[c.Name+" --"+at.Value])
		case index < 0:
			r.failed(at, "%s%s", strings.TrimSpace("unknown key "+shownKey(at.Value)), didYouMean("", at.Value, words))
		case index < commands:
			i := slices.IndexFunc(c.Subcommands, func(c *cli.Command) bool { return c.Name == at.Value })
			sub := c.Subcommands[i]
			into := make(map[string][]option)
			if sub == r.command {
				r.own = into
			}
			r.section(value, sub, keys(sub), into)
		default:
			values[at.Value] = r.values(known[index-commands], value)
		}
		first[at.Value] = at.Line
	}
}

// shownKey returns a key in quotes, or "" if it does not look like one. What is printed may be public, and the file may be another one than
// whoever runs btfgen thinks, with secrets.
func shownKey(key string) string {
	const longest = 40 // twice as long as any key
	odd := func(c rune) bool {
		return c != '-' && c != '_' && (c > unicode.MaxASCII || !unicode.IsLetter(c) && !unicode.IsDigit(c))
	}
	if len(key) > longest || strings.ContainsFunc(key, odd) {
		return ""
	}
	return strconv.Quote(key)
}

// values reads the value of a key, or its list.
func (r *configReader) values(k key, n *yaml.Node) []option {
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode && k.repeats {
		items = n.Content
	}
	var all []option
	var texts []string
	for _, n := range items {
		if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
			r.failed(n, "%s: want one value", k.name)
			continue
		}
		text := n.Value
		if k.path {
			file := relative(text, filepath.Dir(r.path))
			if _, err := os.Stat(file); err == nil || k.name != "boot" { // --boot also takes keys of kernels
				text = file
			}
		}
		if k.flag != nil {
			if err := checkValue(k.flag, text); err != nil {
				r.failed(n, "%s: %v", k.name, err)
			}
		}
		o := option{flag: k.flag, value: text, from: r.pos(n)}
		if !r.named {
			o.refused = r.refuse(k, n.Value, &o)
		}
		all, texts = append(all, o), append(texts, text)
	}
	switch {
	case k.list && len(all) == 0:
		return []option{{flag: k.flag, value: noClass, from: r.pos(n)}}
	case k.list:
		return []option{{flag: k.flag, value: strings.Join(texts, ","), from: all[0].from}}
	}
	return all
}

// relative returns a path, or an OBJECT, relative to a folder.
func relative(text, folder string) string {
	if _, path, ok := machine.Cut(text); ok {
		return strings.TrimSuffix(text, path) + relative(path, folder)
	}
	if text == "" || text == "-" || folder == "." || filepath.IsAbs(text) {
		return text
	}
	if strings.HasSuffix(text, "/") {
		return filepath.Join(folder, text) + "/"
	}
	return filepath.Join(folder, text)
}
