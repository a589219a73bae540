// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// The tables. They have the grammar of stanza.go.
//
//go:embed *.txt
var files embed.FS

// Fact is something that not every kernel has. The constants are in names.go. The zero Fact is something that every kernel has.
type Fact uint16

// Every is what every kernel has.
const Every Fact = 0

// row is an entry of a table: what it is about, and since when or up to when kernels have it.
type row struct {
	Period
	entry     *entry
	usedBy    string   // in words, "" if findings have words of their own
	machine   string   // the only machine it holds for, "" for all
	registers int      // registers in use without it, 0 for any number
	programs  []string // types of programs for which it holds, nil for all
	names     []string // hooks, kfuncs or enumerators
	only      []string // types of programs that can call kfuncs, nil for other facts
	returns   Return
	examples  []example
}

// table is all tables except that of helpers.
type table struct {
	rows    []*row
	rowOf   []int // by fact
	names   []string
	named   map[string]Fact
	came    map[string]Release // the first releases of parts of the kernel's interface, by name
	types   []string           // structs and functions: names of witnesses
	hooks   map[string]Hook
	returns map[string]Return // by type of attachment
	kfuncs  byProgram
	only    map[string][]string // by kfunc: the types of programs that can call it
	calls   byProgram           // calls of helpers with maps of a type, by "map_delete_elem SOCKMAP"
}

// byProgram says since or up to when programs of a type can do something: by what it is, then by type of programs.
type byProgram map[string]map[string]Period

func (t byProgram) add(r *row, name string) {
	if t[name] == nil {
		t[name] = make(map[string]Period)
	}
	for _, kind := range r.programs {
		t[name][kind] = r.Period
	}
}

// the is the tables. A test reads them, so that there is no mistake in them.
var the = sync.OnceValue(func() *table {
	t, err := readTables(readFile)
	if err == nil {
		err = t.constants()
	}
	if err != nil {
		panic(err)
	}
	return t
})

// readFile returns the text of a table.
func readFile(name string) string {
	text, err := files.ReadFile(name)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// readTables reads the tables, whose text a function returns.
func readTables(text func(name string) string) (*table, error) {
	t := &table{
		names: make([]string, len(constants)), rowOf: make([]int, len(constants)), named: make(map[string]Fact),
		came: make(map[string]Release), hooks: make(map[string]Hook), returns: make(map[string]Return),
		kfuncs: make(byProgram), only: make(map[string][]string), calls: make(byProgram),
	}
	for _, file := range []struct {
		name string
		add  func(r *row) error
	}{
		{"facts.txt", t.fact}, {"maps.txt", t.fact}, {"hooks.txt", t.hook}, {"kfuncs.txt", t.kfunc}, {"interface.txt", t.release},
	} {
		l, err := entries(file.name, text(file.name))
		if err != nil {
			return nil, err
		}
		for i := range l {
			r, err := readRow(&l[i])
			if err != nil {
				return nil, err
			}
			if err := file.add(r); err != nil {
				return nil, l[i].wrap(l[i].line, err)
			}
			for _, w := range r.witnesses {
				if w.kind != enumerator {
					t.types = append(t.types, w.name)
				}
			}
			t.rows = append(t.rows, r)
		}
	}
	return t, nil
}

// machines are those whose kernels differ.
var machines = []string{"x86_64", "i386", "arm64", "arm", "ppc64le", "riscv64", "s390x", "loongarch64", "mips64el"}

// readRow reads the properties of an entry.
func readRow(e *entry) (*row, error) {
	r := &row{entry: e}
	seen := make(map[string]bool)
	once := func(key string, to *string) func(string) error {
		return func(value string) error {
			if seen[key] {
				return errors.New("twice")
			}
			seen[key], *to = true, value
			return nil
		}
	}
	change := func(key string, to *Change) func(string) error {
		return func(value string) (err error) {
			if seen[key] {
				return errors.New("twice")
			}
			seen[key] = true
			*to, err = ParseChange(value)
			return err
		}
	}
	shows := func(role role) func(string) error {
		return func(value string) error {
			w, err := parseWitness(value, role)
			r.witnesses = append(r.witnesses, w)
			return err
		}
	}
	examples := func(want Presence) func(string) error {
		return func(value string) error {
			for text := range strings.SplitSeq(value, "; ") {
				x, err := parseExample(text, want)
				if err != nil {
					return err
				}
				r.examples = append(r.examples, x)
			}
			return nil
		}
	}
	list := func(to *[]string) func(string) error {
		return func(value string) error {
			*to = append(*to, strings.Fields(value)...)
			return nil
		}
	}
	source := ""
	err := e.read(map[string]func(string) error{
		"used by": once("used by", &r.usedBy), "setting": once("setting", &r.Setting), "source": once("source", &source),
		"registers": func(value string) (err error) { r.registers, err = strconv.Atoi(value); return err },
		"machine":   once("machine", &r.machine),
		"since":     change("since", &r.Since), "until": change("until", &r.Until),
		"witness": shows(certain), "hint": shows(hint), "against": shows(against), "needs": shows(needed),
		"yes": examples(Yes), "no": examples(No), "perhaps": examples(Perhaps),
		"programs": list(&r.programs), "names": list(&r.names), "adds": list(&r.names), "only": list(&r.only),
		"values": func(value string) (err error) { r.returns, err = parseReturn(value); return err },
	})
	if err == nil && !seen["since"] && !seen["until"] && len(r.names) == 0 {
		err = e.wrap(e.line, errors.New("neither since nor until"))
	}
	if err != nil {
		return r, err
	}
	if err := r.check(); err != nil {
		return r, e.wrap(e.line, err)
	}
	return r, nil
}

// check returns an error if the properties do not go together, or name what does not exist.
func (r *row) check() error {
	for _, p := range slices.Concat(r.programs, r.only) {
		kind, _, _ := strings.Cut(p, "/")
		if p != AnyType && p != NotSleeping && programTable()[kind] == nil {
			return fmt.Errorf("there is no type of programs %s", p)
		}
	}
	for _, x := range r.examples {
		for _, name := range slices.Concat(x.with, x.without) {
			if strings.HasPrefix(name, "CONFIG_") && name != r.Setting {
				return fmt.Errorf("%s: the setting is %q", x.text, r.Setting)
			}
		}
	}
	if r.machine != "" && !slices.Contains(machines, r.machine) {
		return fmt.Errorf("there is no machine %s", r.machine)
	}
	if r.Setting != "" && !strings.HasPrefix(r.Setting, "CONFIG_") {
		return errors.New("want a setting that begins with CONFIG_")
	}
	return nil
}

// known checks that the subject of a fact exists. A fact with a misspelled subject would never be looked up.
func known(name string) error {
	kind, what, _ := strings.Cut(name, " ")
	switch kind {
	case "map-type", "sleepable":
		return unless(isMapType(what), what+" is no type of maps")
	case "call":
		helper, of, _ := strings.Cut(what, " ")
		return cmp.Or(
			unless(HelperNamed(helper) != 0, "there is no helper "+helper),
			unless(isMapType(of) || strings.HasPrefix(of, "kptr"), of+" is no type of maps"),
		)
	case "license":
		helper, of, _ := strings.Cut(what, "/")
		return cmp.Or(
			unless(HelperNamed(helper) != 0, "there is no helper "+helper),
			unless(of == "" || programTable()[of] != nil, "there is no type of programs "+of),
		)
	}
	return nil
}

// constants checks that the tables have every fact with a constant.
func (t *table) constants() error {
	for f, name := range constants {
		if t.names[f] != name {
			return fmt.Errorf("no entry for %s", name)
		}
	}
	return nil
}

// fact adds a row of facts.txt or maps.txt.
func (t *table) fact(r *row) error {
	if len(r.programs) > 0 {
		helper, found := strings.CutPrefix(r.entry.name, "call ")
		if !found {
			return errors.New("only calls depend on the type of programs")
		}
		for _, name := range r.each(helper) {
			if err := known("call " + name); err != nil {
				return err
			}
			t.calls.add(r, name)
		}
		return nil
	}
	for _, name := range r.each(r.entry.name) {
		if err := known(name); err != nil {
			return err
		}
		if r.machine != "" {
			name += " on " + r.machine
		}
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
	if attach, ok := strings.CutPrefix(r.entry.name, "returns "); ok {
		r.returns.Fact = t.named[r.entry.name]
		t.returns[attach] = r.returns
	}
	return nil
}

// hook adds a row of hooks.txt.
func (t *table) hook(r *row) error {
	for _, name := range r.names {
		h := t.hooks[name]
		switch r.entry.name {
		case "disabled":
			h.Disabled, h.Attaches = true, Period{Until: r.Since}
		case "sleepable":
			h.Sleepable, h.Sleeps = true, r.Period
		case "boolean":
			h.Boolean = true
		case "untrusted":
			h.Untrusted = true
		default:
			return errors.New("want disabled, sleepable, boolean or untrusted")
		}
		t.hooks[name] = h
	}
	return nil
}

// kfunc adds a row of kfuncs.txt.
func (t *table) kfunc(r *row) error {
	for _, name := range r.names {
		switch {
		case r.only == nil:
			t.kfuncs.add(r, name)
		case t.only[name] != nil:
			return fmt.Errorf("%s: twice", name)
		default:
			t.only[name] = r.only
		}
	}
	return nil
}

// release adds a row of interface.txt.
func (t *table) release(r *row) error {
	for _, name := range r.names {
		if t.came[name] != 0 {
			return fmt.Errorf("%s: twice", name)
		}
		t.came[name] = r.Since.By
	}
	return nil
}

// each returns the names of an entry: of several, what differs is the last word, with commas between.
func (r *row) each(name string) []string {
	at := strings.LastIndexByte(name, ' ') + 1
	l := strings.Split(name[at:], ",")
	for i := range l {
		l[i] = name[:at] + l[i]
	}
	return l
}

// row returns the row of a fact.
func (f Fact) row() *row { t := the(); return t.rows[t.rowOf[f]] }

// String returns the fact's name.
func (f Fact) String() string { return the().names[f] }

// UsedBy says in words what needs the fact, "" where findings have words of their own.
func (f Fact) UsedBy() string { return f.row().usedBy }

// Setting returns the setting of the kernel's build without which a kernel does not have the fact, "" for none.
func (f Fact) Setting() string { return f.row().Setting }

// Since returns the first release of Linux with the fact.
func (f Fact) Since() Release { return f.row().Since.By }

// Registers returns how many registers kernels without the fact use, 0 for any number.
func (f Fact) Registers() int { return f.row().registers }

// Machine returns the machine whose kernels differ in the fact, "" for all.
func (f Fact) Machine() string { return f.row().machine }

// All returns the facts.
func All() []Fact {
	return slices.Sorted(maps.Values(the().named))
}
