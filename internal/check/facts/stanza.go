// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"errors"
	"fmt"
	"strings"
)

// All tables have one grammar. An entry is a name at the beginning of a line, and properties in indented lines under it:
//
//	map large-keys
//		since: 5.11
//		source: c6bde958a62b bpf: Lift hashtab key_size limit
//
// A line that is indented twice continues the line before it. A line that begins with # is a comment.

// entry is an entry of a table.
type entry struct {
	file, name string
	line       int
	properties []property
}

// property is a property of an entry.
type property struct {
	key, value string
	line       int
}

// entries reads a table.
func entries(file, text string) (l []entry, err error) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, " \n")
		content := strings.TrimLeft(line, "\t")
		depth := len(line) - len(content)
		switch {
		case content == "" || content[0] == '#':
		case depth == 0:
			l = append(l, entry{file: file, name: content, line: n})
		case len(l) == 0:
			return nil, fmt.Errorf("%s:%d: no name comes before it", file, n)
		case depth == 1:
			e := &l[len(l)-1]
			key, value, ok := strings.Cut(content, ":")
			if !ok {
				return nil, fmt.Errorf("%s:%d: want KEY: VALUE", file, n)
			}
			e.properties = append(e.properties, property{key, strings.TrimSpace(value), n})
		default:
			e := &l[len(l)-1]
			if len(e.properties) == 0 {
				return nil, fmt.Errorf("%s:%d: continues no property", file, n)
			}
			p := &e.properties[len(e.properties)-1]
			p.value = strings.TrimSpace(p.value + " " + content)
		}
	}
	return l, nil
}

// wrap says at which line of the table an error is.
func (e *entry) wrap(line int, err error) error {
	return fmt.Errorf("%s:%d: %s: %w", e.file, line, e.name, err)
}

// read calls the function that is named like the key of each property.
func (e *entry) read(keys map[string]func(value string) error) error {
	for _, p := range e.properties {
		f, ok := keys[p.key]
		if !ok {
			return e.wrap(p.line, fmt.Errorf("no property %q", p.key))
		}
		err := error(nil)
		if p.value == "" {
			err = errors.New("no value")
		} else {
			err = f(p.value)
		}
		if err != nil {
			return e.wrap(p.line, fmt.Errorf("%s: %w", p.key, err))
		}
	}
	return nil
}
