// SPDX-License-Identifier: Apache-2.0

// Package config reads btfgen.yaml: what else stands on the command line.
//
// It knows no option. It is told which commands there are, and what each of them takes, by names, kinds and
// whether something repeats; so the file has whatever the command line has:
//
//	btf: [kernels/]            for every command that takes it
//	objects: [tracer.bpf.o]
//	generate:                  for one command
//	  output: tracer.btfa
//	archive:
//	  lookup:                  for one of a group
//	    archive: tracer.btfa
//
// The file is outside data: its size is bounded, its nesting is that of the commands, and what YAML has beyond
// mappings, lists and scalars (anchors, aliases, tags, several documents) is refused, as are unknown keys,
// repeated ones and values of another kind. Errors begin with file:line:column.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/btfgen/btfgen/internal/bpfobj/machine"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/text/suggest"
)

// Kind is what a value has to be.
type Kind int

// The kinds of values.
const (
	Text Kind = iota
	Number
	Bool
)

func (k Kind) String() string { return [...]string{"a text", "a whole number", "true or false"}[k] }

// Key is an option or argument of a command.
type Key struct {
	Name    string
	Kind    Kind
	Repeats bool // a list, of which one may stand alone
	Path    bool // relative to the directory of the file
}

// common says whether a key may stand outside sections. A single file is one command's.
func (k Key) common() bool { return k.Repeats || !k.Path }

// Command is a command with what it takes. Commands that take something of the same name take the same.
type Command struct {
	Name []string // "archive", "list"
	Keys []Key
}

// Value is one value of a key, as it would be typed.
type Value struct {
	Text string
	Pos  string // "btfgen.yaml:3:5"
}

// File is a file that was read. It is immutable.
type File struct {
	path, dir string
	commands  []Command
	common    map[string][]Value
	sections  map[string]map[string][]Value // by name of command, words with spaces
}

// Read reads a file. All its mistakes are one error, joined.
func Read(path string, commands []Command) (*File, error) {
	data, err := read(path)
	if err != nil {
		return nil, err
	}
	f := &File{
		path: path, dir: filepath.Dir(path), commands: commands,
		common: make(map[string][]Value), sections: make(map[string]map[string][]Value),
	}
	root, err := parse(data)
	if err != nil {
		return nil, f.syntax(err)
	}
	p := parser{File: f}
	if root != nil {
		p.top(root)
	}
	if len(p.errs) > 0 {
		return nil, errors.Join(p.errs...)
	}
	return f, nil
}

func read(path string) ([]byte, error) {
	if fi, err := os.Stat(path); err == nil && !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", path) // a pipe could be waited for without end
	}
	r, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, errors.Unwrap(err))
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, limits.ConfigBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, errors.Unwrap(err))
	case len(data) > limits.ConfigBytes:
		return nil, fmt.Errorf("%s: larger than the limit of %d KiB", path, limits.ConfigBytes>>10)
	}
	return data, nil
}

// parse returns the root of the only document, nil if there is none.
func parse(data []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, next yaml.Node
	switch err := dec.Decode(&doc); {
	case err == io.EOF:
		return nil, nil
	case err != nil:
		return nil, err
	}
	switch err := dec.Decode(&next); {
	case err == nil:
		return nil, fmt.Errorf("yaml: line %d: a second document", next.Line)
	case err != io.EOF:
		return nil, err
	}
	return doc.Content[0], nil
}

// syntax gives an error of the library, "yaml: line 3: …", its place.
func (f *File) syntax(err error) error {
	text, _ := strings.CutPrefix(err.Error(), "yaml: ")
	if numbered, ok := strings.CutPrefix(text, "line "); ok {
		if line, text, ok := strings.Cut(numbered, ": "); ok {
			return fmt.Errorf("%s:%s: %s", f.path, line, text)
		}
	}
	return fmt.Errorf("%s: %s", f.path, text)
}

// Values returns what the file has for a command, by key. What stands in the command's section replaces what is
// common; an empty list is none.
func (f *File) Values(command ...string) map[string][]Value {
	all := make(map[string][]Value)
	for _, c := range f.commands {
		if !slices.Equal(c.Name, command) {
			continue
		}
		for _, k := range c.Keys {
			own, ok := f.sections[strings.Join(command, " ")][k.Name]
			if !ok {
				own, ok = f.common[k.Name]
			}
			if ok {
				all[k.Name] = own
			}
		}
	}
	return all
}

// parser makes values of nodes.
type parser struct {
	*File
	errs []error
}

func (p *parser) pos(n *yaml.Node) string { return fmt.Sprintf("%s:%d:%d", p.path, n.Line, n.Column) }

// failed notes a mistake. Of very many the rest is not told.
func (p *parser) failed(n *yaml.Node, format string, args ...any) {
	if len(p.errs) < limits.Errors {
		p.errs = append(p.errs, fmt.Errorf("%s: %s", p.pos(n), fmt.Sprintf(format, args...)))
	}
}

// plain says whether a node is nothing but its value.
func (p *parser) plain(n *yaml.Node) bool {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		p.failed(n, "anchors and aliases are not taken")
	case n.Style&yaml.TaggedStyle != 0:
		p.failed(n, "tags are not taken: %s", n.Tag)
	default:
		return true
	}
	return false
}

// entries calls use for each key of a mapping.
func (p *parser) entries(n *yaml.Node, use func(key string, at, value *yaml.Node)) {
	if !p.plain(n) {
		return
	}
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return // a section without content
	}
	if n.Kind != yaml.MappingNode {
		p.failed(n, "want keys with values")
		return
	}
	first := make(map[string]*yaml.Node)
	for i := 0; i+1 < len(n.Content); i += 2 {
		at, value := n.Content[i], n.Content[i+1]
		switch {
		case !p.plain(at):
		case at.Kind != yaml.ScalarNode:
			p.failed(at, "a key has to be a word")
		case first[at.Value] != nil:
			p.failed(at, "%q stands in line %d already", at.Value, first[at.Value].Line)
		default:
			first[at.Value] = at
			use(at.Value, at, value)
		}
	}
}

// top reads the file.
func (p *parser) top(root *yaml.Node) {
	var words []string
	keys := make(map[string]Key)
	for _, c := range p.commands {
		words = append(words, c.Name[0])
		for _, k := range c.Keys {
			keys[k.Name] = k
		}
	}
	for name, k := range keys {
		if k.common() {
			words = append(words, name)
		}
	}
	slices.Sort(words)
	p.entries(root, func(key string, at, value *yaml.Node) {
		k, known := keys[key]
		switch {
		case p.isCommand(key):
			p.section([]string{key}, value)
		case known && k.common():
			p.common[key] = p.values(k, value)
		case known:
			p.failed(at, "%q belongs to a command, as in %q", key, p.example(key))
		default:
			p.unknown(at, key, words)
		}
	})
}

func (p *parser) isCommand(word string) bool {
	return slices.ContainsFunc(p.commands, func(c Command) bool { return c.Name[0] == word })
}

// example shows a key in the section of the first command that has it.
func (p *parser) example(key string) string {
	for _, c := range p.commands {
		if slices.ContainsFunc(c.Keys, func(k Key) bool { return k.Name == key }) {
			return strings.Join(c.Name, ": {") + ": {" + key + ": …}" + strings.Repeat("}", len(c.Name)-1)
		}
	}
	return ""
}

// section reads what stands under the name of a command, or of a group of commands.
func (p *parser) section(name []string, n *yaml.Node) {
	var own *Command
	var words []string
	for i, c := range p.commands {
		switch {
		case slices.Equal(c.Name, name):
			own = &p.commands[i]
		case len(c.Name) > len(name) && slices.Equal(c.Name[:len(name)], name):
			words = append(words, c.Name[len(name)])
		}
	}
	if own == nil {
		p.entries(n, func(key string, at, value *yaml.Node) {
			if !slices.Contains(words, key) {
				p.unknown(at, key, words)
				return
			}
			p.section(append(name[:len(name):len(name)], key), value)
		})
		return
	}
	for _, k := range own.Keys {
		words = append(words, k.Name)
	}
	values := make(map[string][]Value)
	p.sections[strings.Join(name, " ")] = values
	p.entries(n, func(key string, at, value *yaml.Node) {
		if i := slices.IndexFunc(own.Keys, func(k Key) bool { return k.Name == key }); i >= 0 {
			values[key] = p.values(own.Keys[i], value)
			return
		}
		p.unknown(at, key, words)
	})
}

func (p *parser) unknown(at *yaml.Node, key string, words []string) {
	hint := ""
	if w := suggest.Word(key, words); w != "" {
		hint = fmt.Sprintf(" (did you mean %s?)", w)
	}
	p.failed(at, "unknown key %q%s", key, hint)
}

// values reads the value of a key, or its list.
func (p *parser) values(k Key, n *yaml.Node) []Value {
	if !p.plain(n) {
		return nil
	}
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode && k.Repeats {
		items = n.Content
	}
	var all []Value
	for _, n := range items {
		if text, ok := p.value(k, n); ok {
			all = append(all, Value{text, p.pos(n)})
		}
	}
	return all
}

// value reads one value as it would be typed.
func (p *parser) value(k Key, n *yaml.Node) (text string, ok bool) {
	if !p.plain(n) {
		return "", false
	}
	tag := n.ShortTag()
	switch {
	case n.Kind != yaml.ScalarNode:
	case k.Kind == Bool && tag == "!!bool":
		ok = true
	case k.Kind == Number && tag == "!!int":
		_, err := strconv.Atoi(n.Value)
		ok = err == nil
	case k.Kind == Text:
		ok = tag != "!!bool" && tag != "!!null"
	}
	switch {
	case !ok && n.Kind == yaml.ScalarNode && k.Kind == Text:
		p.failed(n, "%s: want a text: put %q in quotes", k.Name, n.Value)
	case !ok && n.Kind == yaml.SequenceNode:
		p.failed(n, "%s: want one value, %s", k.Name, k.Kind)
	case !ok:
		p.failed(n, "%s: want %s", k.Name, k.Kind)
	case k.Path:
		return p.place(n.Value), true
	}
	return n.Value, ok
}

// place returns a path, or an object as it is typed, seen from where the program runs.
func (f *File) place(text string) string {
	if _, path, ok := machine.Cut(text); ok {
		return strings.TrimSuffix(text, path) + f.place(path)
	}
	if list, ok := strings.CutPrefix(text, "@"); ok {
		return "@" + f.place(list)
	}
	if text == "" || text == "-" || f.dir == "." || filepath.IsAbs(text) {
		return text
	}
	joined := filepath.Join(f.dir, text)
	if strings.HasSuffix(text, "/") {
		joined += "/"
	}
	return joined
}
