// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// context is which bytes of their context programs may read and write.
type context struct {
	reads, writes []bytesOf
	since         Release // older kernels are not judged
	machine       string  // others are not judged; "" for none
}

// bytesOf is bytes of a context, from lo to before hi, and how many of them an access may have.
type bytesOf struct {
	lo, hi int64
	sizes  string // digits
}

// contextTable is contexts.txt: by type of programs, or by type and type of attachment with a slash between.
var contextTable = sync.OnceValue(func() map[string]*context {
	all, err := readContexts(readFile("contexts.txt"))
	if err != nil {
		panic(err)
	}
	return all
})

func readContexts(text string) (map[string]*context, error) {
	l, err := entries("contexts.txt", text)
	if err != nil {
		return nil, err
	}
	all := make(map[string]*context)
	for i := range l {
		e, c := &l[i], new(context)
		err := e.read(map[string]func(string) error{
			"machine": func(value string) error {
				c.machine = value
				return unless(slices.Contains(machines, value), "no such machine")
			},
			"reads":  func(value string) (err error) { c.reads, err = parseBytes(value); return err },
			"since":  func(value string) (err error) { c.since, err = parseRelease(value); return err },
			"writes": func(value string) (err error) { c.writes, err = parseBytes(value); return err },
		})
		if err != nil {
			return nil, err
		}
		kind, attaches, _ := strings.Cut(e.name, "/")
		if ProgramType(kind).Context == "" {
			return nil, e.wrap(e.line, errors.New("programs of the type have no such context"))
		}
		for attach := range strings.SplitSeq(attaches, ",") {
			name := kind
			if attach != "" {
				name = attached(kind, attach)
			}
			if all[name] != nil {
				return nil, e.wrap(e.line, errors.New("twice"))
			}
			all[name] = c
		}
	}
	return all, nil
}

// parseBytes reads "0..76/124 80..88/8".
func parseBytes(value string) (l []bytesOf, err error) {
	for word := range strings.FieldsSeq(value) {
		var b bytesOf
		if _, err := fmt.Sscanf(word, "%d..%d/%s", &b.lo, &b.hi, &b.sizes); err != nil || b.lo >= b.hi || strings.Trim(b.sizes, "1248") != "" {
			return nil, errors.New("want LO..HI/SIZES")
		}
		l = append(l, b)
	}
	return l, nil
}

// MayAccess reports whether any kernel for a machine lets programs with a type of attachment read or write bytes of their context. since is the
// first release that is known, 0 for programs that are not in the table.
func MayAccess(machine, progType, attach string, off int64, size int, write bool) (may bool, since Release) {
	c := contextTable()[attached(progType, attach)]
	if c == nil {
		c = contextTable()[progType]
	}
	if c == nil || c.machine != "" && c.machine != machine {
		return false, 0
	}
	l := c.reads
	if write {
		l = c.writes
	}
	for _, b := range l {
		if b.lo <= off && off+int64(size) <= b.hi && off%int64(size) == 0 && strings.Contains(b.sizes, strconv.Itoa(size)) {
			return true, c.since
		}
	}
	return false, max(c.since, Linux(4, 18))
}
