// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
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
	// narrow is since when they may read other bytes of a field than its first. From always.lo to before always.hi they always may.
	narrow  Change
	always  struct{ lo, hi int64 }
	machine string // the only machine that is judged, "" for all
}

// bytesOf is bytes of a context, from lo to before hi, and how many of them an access may have.
type bytesOf struct {
	lo, hi int64
	sizes  string // digits
	when   Period
}

// size is a size of a struct that is a context, and since when it has it.
type size struct {
	bytes int64
	when  Period
}

// contexts is contexts.txt.
type contexts struct {
	programs map[string]*context // by type of programs, or by type and type of attachment with a slash between
	sizes    map[string][]size   // by struct, ascending
	ops      map[string]*Ops
}

// contextTable is contexts.txt.
var contextTable = sync.OnceValue(func() *contexts {
	all, err := readContexts(readFile("contexts.txt"))
	if err != nil {
		panic(err)
	}
	return all
})

func readContexts(text string) (*contexts, error) {
	l, err := entries("contexts.txt", text)
	if err != nil {
		return nil, err
	}
	all := &contexts{programs: make(map[string]*context), sizes: make(map[string][]size), ops: make(map[string]*Ops)}
	for i := range l {
		e, c, ops := &l[i], new(context), new(Ops)
		var sizes []size
		keys := map[string]func(string) error{
			"machine": func(value string) error {
				c.machine = value
				return unless(slices.Contains(machines, value), "no such machine")
			},
			"narrow": func(value string) (err error) {
				value, except, found := strings.Cut(value, " except ")
				if found {
					if _, err = fmt.Sscanf(except, "%d..%d", &c.always.lo, &c.always.hi); err != nil {
						return errors.New("want LO..HI")
					}
				}
				c.narrow, err = ParseChange(value)
				return err
			},
			"argument": ops.readArgument,
		}
		e.during(keys, "reads", func(when Period, value string) (err error) {
			c.reads, err = appendBytes(c.reads, when, value)
			return err
		})
		e.during(keys, "writes", func(when Period, value string) (err error) {
			c.writes, err = appendBytes(c.writes, when, value)
			return err
		})
		e.during(keys, "size", func(when Period, value string) error {
			n, err := strconv.Atoi(value)
			sizes = append(sizes, size{int64(n), when})
			return err
		})
		e.during(keys, "fields", ops.readFields)
		err := e.read(keys)
		if err != nil {
			return nil, err
		}
		if err := all.add(e.name, c, ops, sizes); err != nil {
			return nil, e.wrap(e.line, err)
		}
	}
	return all, nil
}

// add adds an entry: a struct_ops, a struct with its sizes, or a type of programs with types of attachment.
func (t *contexts) add(name string, c *context, ops *Ops, sizes []size) error {
	kind, attaches, _ := strings.Cut(name, "/")
	switch {
	case kind == "STRUCT_OPS":
		if t.ops[attaches] != nil {
			return errors.New("twice")
		}
		t.ops[attaches] = ops
		return nil
	case sizes != nil:
		ascending := slices.IsSortedFunc(sizes, func(a, b size) int { return cmp.Compare(a.bytes, b.bytes) })
		if !IsContext(name) || t.sizes[name] != nil || !ascending {
			return errors.New("no context, twice, or not ascending")
		}
		t.sizes[name] = sizes
		return nil
	case ProgramType(kind).Context == "":
		return errors.New("programs of the type have no such context")
	}
	for attach := range strings.SplitSeq(attaches, ",") {
		of := kind
		if attach != "" {
			of = attached(kind, attach)
		}
		if t.programs[of] != nil {
			return errors.New("twice")
		}
		t.programs[of] = c
	}
	return nil
}

// appendBytes appends what "0..76/124 80..88/8" says.
func appendBytes(l []bytesOf, when Period, value string) ([]bytesOf, error) {
	for word := range strings.FieldsSeq(value) {
		b := bytesOf{when: when}
		_, err := fmt.Sscanf(word, "%d..%d/%s", &b.lo, &b.hi, &b.sizes)
		if err != nil || b.lo >= b.hi || strings.Trim(b.sizes, "1248") != "" {
			return nil, errors.New("want LO..HI/SIZES")
		}
		l = append(l, b)
	}
	return l, nil
}

// contextsSince is the first release with which it was compared which bytes of their context programs may access.
var contextsSince = Linux(4, 14)

// Access is whether kernels let programs access bytes of their context.
type Access struct {
	Known bool // the table has such programs
	May   bool // some kernels do
	When  Period
	Since Release // older kernels are not judged
}

// ContextAccess returns whether kernels for a machine let programs with a type of attachment read or write bytes of their context, if the
// struct that is the context has them.
func ContextAccess(machine, progType, attach string, off int64, size int, write bool) Access {
	return contextTable().access(machine, progType, attach, off, size, write)
}

func (t *contexts) access(machine, progType, attach string, off int64, size int, write bool) (a Access) {
	c := t.programs[attached(progType, attach)]
	if c == nil {
		c = t.programs[progType]
	}
	if c == nil || c.machine != "" && c.machine != machine {
		return a
	}
	a.Known, a.Since = true, contextsSince
	l := c.reads
	if write {
		l = c.writes
	}
	for i := range l {
		b := &l[i]
		within := b.lo <= off && off+int64(size) <= b.hi && off%int64(size) == 0
		if !within || !strings.Contains(b.sizes, strconv.Itoa(size)) || a.May && !b.when.Always() {
			continue
		}
		a.May, a.When = true, b.when
		const field = 4
		narrow := !write && size < field && off%field != 0 && (off < c.always.lo || off >= c.always.hi)
		if narrow && a.When.Until == (Change{}) && a.When.Since.By < c.narrow.By {
			a.When.Since = c.narrow
		}
	}
	return a
}

// ContextSize returns since when a struct that is a context has a number of bytes. It is not known of all structs.
func ContextSize(name string, bytes int64) (when Period, known bool) {
	for _, s := range contextTable().sizes[name] {
		if bytes <= s.bytes {
			return s.when, true
		}
	}
	return when, false
}
