// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/cilium/ebpf/asm"
)

// Helper is what is known of a helper.
type Helper struct {
	Setting   string // a setting that the kernel's build needs for it, though the enum always lists it; "" for none
	Instead   int64  // the helper that loaders put in its place on kernels without it, 0 for none
	Sleeps    bool   // only programs that may sleep can call it
	GPL       bool   // only programs with a license compatible with the GPL can call it
	Iterators bool   // iterators may call it where the kernel has a function for them

	Memory    []Memory // all memory that it accesses, nil if not known
	Writes    Written
	OfMap     []asm.Register // arguments that are memory of keys or values of maps
	Sizes     []Size
	Object    KernelPointer
	CallsBack *Callback // how it calls a function back before it returns, nil if it does not
	CallsLate bool      // it has a function called after it returns

	Result     string // the struct of the kernel to which it returns a pointer, "" for none
	GivesValue bool   // it returns a pointer to the value of a map
	GivesRing  bool   // it returns a pointer to memory of a ring buffer

	since   Release
	filled  map[string]Period // programs that have to write the memory before the helper does
	callers map[string]Period
	refused map[string]Period // programs that get it, and may not call it
	vendors map[string]Period // programs for which vendors' kernels differ
	compare map[string]Period // programs that have to compare the object with 0 first, though others need not
}

// Memory is memory that a helper accesses.
type Memory struct {
	At, Size asm.Register // registers of the address and the size; Size is R0 for the size of the map's keys or values
	Value    bool         // the size is that of the map's values, not of its keys
	Writes   bool
}

// Written is what a helper writes through its arguments.
type Written uint8

// What helpers write.
const (
	WritesAny   Written = iota // memory of any argument
	WritesNone                 // nothing
	WritesFirst                // memory of the first argument
)

// Size is an argument that is a size of memory.
type Size struct {
	At   asm.Register
	Zero bool // it may be 0
}

// KernelPointer is an argument that is a pointer to a struct of the kernel; At is R0 for none.
type KernelPointer struct {
	At   asm.Register
	Null bool // it may be null
}

// Callback is how a helper calls a function back.
type Callback struct {
	Fn, Context asm.Register // arguments: the function, and what it gets
	Param       asm.Register // the register that has Context in the function
}

// helperTable is helpers.txt, by number.
var helperTable = sync.OnceValue(func() []Helper {
	all, err := readHelpers(readFile("helpers.txt"), groups(programTable()))
	if err != nil {
		panic(err)
	}
	return all
})

var noHelper Helper

// HelperNumbered returns what is known of a helper.
func HelperNumbered(id int64) *Helper {
	if t := helperTable(); id > 0 && id < int64(len(t)) {
		return &t[id]
	}
	return &noHelper
}

// HelperNamed returns the number of a helper, "map_lookup_elem"; 0 for none.
func HelperNamed(name string) int64 { return helperNumbers()[name] }

var helperNumbers = sync.OnceValue(func() map[string]int64 {
	numbers := make(map[string]int64, LastHelper)
	for id := int64(1); id <= LastHelper; id++ {
		numbers[strings.TrimPrefix(HelperName(id), "bpf_")] = id
	}
	return numbers
})

// CallersName returns what programs with a type of attachment are called in helpers.txt, "" if it does not have them.
func CallersName(progType, attach string) string {
	for _, name := range []string{attached(progType, attach), progType} {
		if p := programTable()[name]; p != nil && len(p.groups) > 0 {
			return name
		}
	}
	return ""
}

// Callers returns the types of programs in helpers.txt.
func Callers() (l []string) {
	for name, p := range programTable() {
		if len(p.groups) > 0 {
			l = append(l, name)
		}
	}
	return l
}

// Callable returns since when programs may call the helper, by their name of [CallersName]; false if they may not.
func (h *Helper) Callable(callers string) (p Period, ok bool) {
	p, ok = h.callers[callers]
	if _, differ := h.vendors[callers]; differ {
		_, attach, _ := strings.Cut(callers, "/")
		came := Change{By: max(h.since, Interface()["BPF_"+attach])}
		if ok {
			p.Since = came
		} else {
			p.Until = came
		}
		return p, true
	}
	return p, ok
}

// MayBeNull reports whether programs may give the helper an object that they did not compare with 0.
func (h *Helper) MayBeNull(callers string) bool {
	_, compare := h.compare[callers]
	return h.Object.Null && !compare
}

// Refused reports whether the verifier refuses calls of programs that get the helper.
func (h *Helper) Refused(callers string) bool {
	_, ok := h.refused[callers]
	return ok
}

// WantsFilled reports whether programs have to write the memory before the helper does.
func (h *Helper) WantsFilled(callers string) bool {
	_, ok := h.filled[callers]
	return ok
}

// readHelpers reads helpers.txt. types has the types of programs by their names and groups.
func readHelpers(text string, types map[string][]string) ([]Helper, error) {
	l, err := entries("helpers.txt", text)
	if err != nil {
		return nil, err
	}
	all := make([]Helper, LastHelper+1)
	for i := range l {
		e := &l[i]
		id := HelperNamed(e.name)
		switch {
		case id == 0:
			return nil, e.wrap(e.line, errors.New("package asm of cilium/ebpf has no such helper"))
		case all[id].callers != nil:
			return nil, e.wrap(e.line, errors.New("twice"))
		}
		if err := all[id].read(e, types); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// read reads the properties of a helper.
func (h *Helper) read(e *entry, types map[string][]string) error {
	h.callers, h.filled, h.refused = make(map[string]Period), make(map[string]Period), make(map[string]Period)
	h.vendors, h.compare = make(map[string]Period), make(map[string]Period)
	keys := map[string]func(string) error{
		"since":      func(value string) (err error) { h.since, err = parseRelease(value); return err },
		"setting":    func(value string) error { h.Setting = value; return nil },
		"sleeps":     is("yes", &h.Sleeps),
		"license":    is("GPL", &h.GPL),
		"iterators":  is("yes", &h.Iterators),
		"memory":     h.readMemory,
		"stack":      h.readWrites,
		"sizes":      h.readSizes,
		"object":     h.readObject,
		"calls back": h.readCallback,
		"result":     h.readResult,
		"compare":    func(value string) error { return readTypes(h.compare, Period{}, value, types) },
		"vendors":    func(value string) error { return readTypes(h.vendors, Period{}, value, types) },
		"refused":    func(value string) error { return readTypes(h.refused, Period{}, value, types) },
		"filled":     func(value string) error { return readTypes(h.filled, Period{}, value, types) },
		"replaced by": func(value string) error {
			h.Instead = HelperNamed(value)
			return unless(h.Instead != 0, "no such helper")
		},
		"of the map": func(value string) error {
			for word := range strings.FieldsSeq(value) {
				r, err := parseRegister(word)
				if err != nil {
					return err
				}
				h.OfMap = append(h.OfMap, r)
			}
			return nil
		},
	}
	e.during(keys, "callers", func(p Period, value string) error { return readTypes(h.callers, p, value, types) })
	return e.read(keys)
}

// is returns a function that reads a property with one possible value.
func is(want string, to *bool) func(string) error {
	return func(value string) error {
		*to = value == want
		return unless(*to, "want "+want)
	}
}

// during adds the properties with a name that are about a period: "callers", "callers since 5.10..6.1".
func (e *entry) during(keys map[string]func(string) error, name string, read func(Period, string) error) {
	for _, p := range e.properties {
		when, ok := strings.CutPrefix(p.key, name)
		if !ok || when != "" && when[0] != ' ' {
			continue
		}
		period, err := parsePeriod(strings.TrimSpace(when))
		keys[p.key] = func(value string) error { return cmp.Or(err, read(period, value)) }
	}
}

// unless returns an error unless something is so.
func unless(ok bool, text string) error {
	if ok {
		return nil
	}
	return errors.New(text)
}

// parsePeriod reads "since 5.10..6.1", "until 4.19..5.4" or "", which is always.
func parsePeriod(text string) (p Period, err error) {
	if text == "" {
		return p, nil
	}
	if when, ok := strings.CutPrefix(text, "since "); ok {
		p.Since, err = ParseChange(when)
		return p, err
	}
	when, ok := strings.CutPrefix(text, "until ")
	if !ok {
		return p, errors.New("want since or until")
	}
	p.Until, err = ParseChange(when)
	return p, err
}

// readTypes reads types and groups of programs.
func readTypes(into map[string]Period, p Period, value string, types map[string][]string) error {
	for word := range strings.FieldsSeq(value) {
		l := types[word]
		if l == nil {
			return fmt.Errorf("there is no type of programs %s", word)
		}
		for _, t := range l {
			into[t] = p
		}
	}
	return nil
}

// parseRegister reads "r1".
func parseRegister(text string) (asm.Register, error) {
	if len(text) == 2 && text[0] == 'r' && text[1] >= '1' && text[1] <= '5' {
		return asm.Register(text[1] - '0'), nil
	}
	return 0, fmt.Errorf("%q is no argument", text)
}

// readMemory reads "reads r2, a key; writes r1, of size r2".
func (h *Helper) readMemory(value string) error {
	for part := range strings.SplitSeq(value, "; ") {
		var m Memory
		access, size, _ := strings.Cut(part, ", ")
		verb, at, _ := strings.Cut(access, " ")
		var err error
		if m.At, err = parseRegister(at); err != nil {
			return err
		}
		of, sized := strings.CutPrefix(size, "of size ")
		if m.Writes, m.Value = verb == "writes", size == "a value"; sized {
			m.Size, err = parseRegister(of)
		} else if size != "a key" && size != "a value" {
			err = errors.New("want of size rN, a key or a value")
		}
		if err != nil {
			return err
		}
		if verb != "reads" && verb != "writes" {
			return errors.New("want reads or writes")
		}
		h.Memory = append(h.Memory, m)
	}
	return nil
}

// readWrites reads what the helper writes through its arguments.
func (h *Helper) readWrites(value string) error {
	switch value {
	case "reads":
		h.Writes = WritesNone
	case "writes r1":
		h.Writes = WritesFirst
	default:
		return errors.New("want reads or writes r1")
	}
	return nil
}

// readSizes reads "r2; r4 or 0".
func (h *Helper) readSizes(value string) error {
	for part := range strings.SplitSeq(value, "; ") {
		at, zero := strings.CutSuffix(part, " or 0")
		r, err := parseRegister(at)
		if err != nil {
			return err
		}
		h.Sizes = append(h.Sizes, Size{r, zero})
	}
	return nil
}

// readObject reads "r2" or "r2 or null".
func (h *Helper) readObject(value string) (err error) {
	at, null := strings.CutSuffix(value, " or null")
	h.Object.Null = null
	h.Object.At, err = parseRegister(at)
	return err
}

// readCallback reads "r2, context r3 as r4", or "later".
func (h *Helper) readCallback(value string) (err error) {
	if value == "later" {
		h.CallsLate = true
		return nil
	}
	var fn, context, param string
	if _, err := fmt.Sscanf(strings.ReplaceAll(value, ",", ""), "%s context %s as %s", &fn, &context, &param); err != nil {
		return errors.New("want rN, context rN as rN, or later")
	}
	h.CallsBack = new(Callback)
	for text, to := range map[string]*asm.Register{fn: &h.CallsBack.Fn, context: &h.CallsBack.Context} {
		if *to, err = parseRegister(text); err != nil {
			return err
		}
	}
	h.CallsBack.Param, err = parseRegister(param)
	return err
}

// readResult reads what the helper returns a pointer to.
func (h *Helper) readResult(value string) error {
	name, isStruct := strings.CutPrefix(value, "struct ")
	switch {
	case isStruct:
		h.Result = name
	case value == "value of a map":
		h.GivesValue = true
	case value == "memory of a ring buffer":
		h.GivesRing = true
	default:
		return errors.New("want struct NAME, value of a map or memory of a ring buffer")
	}
	return nil
}
