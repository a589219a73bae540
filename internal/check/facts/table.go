// SPDX-License-Identifier: Apache-2.0

package facts

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// factText says what kernels differ in, and how a kernel shows whether it has it.
//
//go:embed facts.txt
var factText string

// Fact is something that not every kernel has. The constants are in names.go. The zero Fact is something that every kernel has.
type Fact uint16

// Every is what every kernel has.
const Every Fact = 0

// row is a line of the table.
type row struct {
	name    string // as in the table, with commas between the last words of several
	usedBy  string // in words, "" if findings have words of their own
	witness []witness
	setting string // of the kernel's build, without which a kernel does not have it; "" for none
	since   Release
}

// witness is something in the BTF of the kernels that have a fact.
type witness struct {
	text    string
	name    string // of a struct or function
	part    string // member or enumerator, "" for the whole
	kind    witnessKind
	enum    Enum
	unsure  bool // kernels may have the fact without it
	static  bool // a function that not every BTF with functions lists
	without bool // kernels that have it do not have the fact
}

// witnessKind is the kind of a witness.
type witnessKind uint8

const (
	structure witnessKind = iota // or a member
	function
	enumerator
)

// table is facts.txt.
type table struct {
	rows    []row
	rowOf   []int // by fact
	names   []string
	named   map[string]Fact
	came    map[string]Release // with which parts of the kernel's interface came, by name
	types   []string           // structs and functions: names of witnesses
	hooks   map[string]Hook
	returns map[string]Return // by type of attachment
	kfuncs  kindTable
	calls   kindTable // of helpers with maps of a type, by "map_delete_elem SOCKMAP"
}

// kindTable says since or up to when programs of a type can do something: by what it is, then by type of programs.
type kindTable map[string]map[string]Period

// add adds a line: the types of programs, with commas between them, and what they do.
func (t kindTable) add(when Period, types string, names []string) {
	for _, name := range names {
		if t[name] == nil {
			t[name] = make(map[string]Period)
		}
		for kind := range strings.SplitSeq(types, ",") {
			t[name][kind] = when
		}
	}
}

// the is the table. A test reads it, so that there is no mistake in it.
var the = sync.OnceValue(func() *table {
	t, err := readTable(factText)
	if err != nil {
		panic(err)
	}
	return t
})

func readTable(text string) (*table, error) {
	t := &table{
		names: make([]string, len(constants)), rowOf: make([]int, len(constants)), named: make(map[string]Fact), came: make(map[string]Release), hooks: make(map[string]Hook),
		returns: make(map[string]Return), kfuncs: make(kindTable), calls: make(kindTable),
	}
	paragraph := ""
	for line := range strings.Lines(strings.ReplaceAll(text, "\n  ", " ")) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if line[0] == '[' {
			paragraph = line
			continue
		}
		read := t.fact
		if paragraph != "" {
			read = func(line string) error { return t.list(paragraph, strings.Fields(line)) }
		}
		if err := read(line); err != nil {
			return nil, fmt.Errorf("%s: %w", line, err)
		}
	}
	for f, name := range constants {
		if t.names[f] != name {
			return nil, fmt.Errorf("no line for %s", name)
		}
	}
	last := Release(0)
	for id := int64(1); HelperName(id)[0] != '#'; id++ {
		name := HelperName(id)
		if r, ok := t.came[name]; ok {
			last = r
		} else if last != 0 {
			t.came[name] = last
		}
	}
	return t, nil
}

// fact reads a line of a fact.
func (t *table) fact(line string) error {
	r, err := parseRow(line)
	if err != nil {
		return err
	}
	for _, name := range r.each() {
		if t.named[name] != 0 {
			return fmt.Errorf("%s: twice", name)
		}
		f := Fact(len(t.names))
		if i := slices.Index(constants[:], name); i > 0 {
			f = Fact(i)
			t.names[f], t.rowOf[f] = name, len(t.rows)
		} else {
			t.names, t.rowOf = append(t.names, name), append(t.rowOf, len(t.rows))
		}
		t.named[name] = f
	}
	if strings.HasPrefix(r.name, "returns ") {
		attach, ret, err := parseReturn(r.name)
		if _, twice := t.returns[attach]; err != nil || twice {
			return errors.New("want a type of attachment, once, and LO..HI")
		}
		ret.Fact = t.named[r.name]
		t.returns[attach] = ret
	}
	for _, w := range r.witness {
		if w.kind != enumerator {
			t.types = append(t.types, w.name)
		}
	}
	t.rows = append(t.rows, *r)
	return nil
}

// list reads a line of a paragraph: when, and names.
func (t *table) list(paragraph string, words []string) error {
	_, when, err := parsePeriod("@" + words[0])
	if err != nil {
		when.By, err = parseRelease(words[0])
	}
	if paragraph == "[kfuncs]" || paragraph == "[calls with maps]" {
		if err != nil || len(words) < 3 {
			return errors.New("want AFTER..BY TYPES NAMES")
		}
		if paragraph == "[kfuncs]" {
			t.kfuncs.add(when, words[1], words[2:])
			return nil
		}
		when.Withdrawn = true
		if len(words) != 4 {
			return errors.New("want AFTER..BY TYPES HELPER MAPS")
		}
		for kind := range strings.SplitSeq(words[3], ",") {
			t.calls.add(when, words[1], []string{words[2] + " " + kind})
		}
		return nil
	}
	for _, name := range words[1:] {
		h := t.hooks[name]
		switch paragraph {
		case "[enumerators]":
			t.came[name] = when.By
			continue
		case "[disabled hooks]":
			h.Disabled = when.By
		case "[sleepable hooks]":
			h.Sleepable, h.Sleeps = true, when
		case "[no longer sleepable]":
			h.Withdrawn = true
		case "[boolean hooks]":
			h.Boolean = true
		default:
			return errors.New("unknown paragraph")
		}
		t.hooks[name] = h
	}
	return err
}

func parseRow(line string) (*row, error) {
	var c []string
	for column := range strings.SplitSeq(line, "  ") {
		if column = strings.TrimSpace(column); column != "" {
			c = append(c, column)
		}
	}
	if len(c) != 6 {
		return nil, errors.New("want six columns")
	}
	since, err := parseRelease(c[4])
	r := &row{name: c[0], since: since}
	for i, to := range map[int]*string{1: &r.usedBy, 3: &r.setting} {
		if c[i] != "-" {
			*to = c[i]
		}
	}
	for _, word := range strings.Fields(c[2]) {
		if word == "-" {
			continue
		}
		w, werr := parseWitness(word)
		r.witness, err = append(r.witness, w), errors.Join(err, werr)
	}
	return r, err
}

// each returns the names of the facts of a row: of several, what differs is at the end, with commas between.
func (r *row) each() []string {
	at := strings.LastIndexByte(r.name, ' ') + 1
	l := strings.Split(r.name[at:], ",")
	for i := range l {
		l[i] = r.name[:at] + l[i]
	}
	return l
}

func parseWitness(word string) (w witness, err error) {
	word, w.unsure = strings.CutSuffix(word, "?")
	w.text = word
	word, w.without = strings.CutPrefix(word, "!")
	word, w.static = strings.CutPrefix(word, "static:")
	w.name = word
	if name, ok := strings.CutSuffix(word, "()"); ok {
		w.name, w.kind = name, function
	} else if name, part, ok := strings.Cut(word, ":"); ok {
		w.name, w.part, w.kind = name, part, enumerator
		w.enum, err = enumNamed(name)
	} else {
		w.name, w.part, _ = strings.Cut(word, ".")
	}
	return w, err
}

// row returns the row of a fact.
func (f Fact) row() *row { t := the(); return &t.rows[t.rowOf[f]] }

// String returns the fact's name.
func (f Fact) String() string { return the().names[f] }

// UsedBy says in words what needs the fact, "" where findings have words of their own.
func (f Fact) UsedBy() string { return f.row().usedBy }

// Setting returns the setting of the kernel's build without which a kernel does not have the fact, "" for none.
func (f Fact) Setting() string { return f.row().setting }

// Since returns the first release of Linux with the fact.
func (f Fact) Since() Release { return f.row().since }

// All yields the facts.
func All() (l []Fact) {
	for f := range the().names[1:] {
		l = append(l, Fact(f+1))
	}
	return l
}
