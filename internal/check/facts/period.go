// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"strings"
)

// Period is since when, or up to when, kernels have something, and what shows it. The zero Period is always.
type Period struct {
	Since, Until Change
	Setting      string // the setting that the kernel's build needs for it, "" for none
	witnesses    []witness
}

// Change is when something came or went. By is the first release known to be changed. After is the last release known to be unchanged; it is
// 0 if By is the release of the change. The zero Change never happened.
type Change struct{ After, By Release }

// Always reports whether every kernel has it.
func (p *Period) Always() bool {
	return p.Since == Change{} && p.Until == Change{} && p.Setting == "" && len(p.witnesses) == 0
}

// String returns "6.9", or "5.10..6.1".
func (c Change) String() string {
	if c.After != 0 {
		return c.After.String() + ".." + c.By.String()
	}
	return c.By.String()
}

// ParseChange reads "6.9" or "5.10..6.1"; "always" is the zero Change.
func ParseChange(text string) (c Change, err error) {
	if text == "always" {
		return c, nil
	}
	after, by, between := strings.Cut(text, "..")
	if !between {
		c.By, err = parseRelease(text)
		return c, err
	}
	if c.After, err = parseRelease(after); err == nil {
		c.By, err = parseRelease(by)
	}
	if err == nil && c.After >= c.By {
		err = fmt.Errorf("%s is not older than %s", after, by)
	}
	return c, err
}

// witness is something in the BTF of the kernels that have a fact, or that do not.
type witness struct {
	text string // for reports: "static:foo()", or "!foo()" if kernels with the fact do not have foo
	name string // the struct or function
	part string // member or enumerator, "" for the whole
	kind witnessKind
	enum Enum
	role role
}

// witnessKind is the kind of a witness.
type witnessKind uint8

const (
	structure witnessKind = iota // a struct or its member
	function                     // every BTF with functions lists it
	static                       // a function that not every BTF with functions lists
	enumerator
)

// role is what a witness shows.
type role uint8

const (
	certain role = iota // kernels with the fact have it, others do not
	hint                // kernels without the fact do not have it
	against             // kernels with the fact do not have it
	needed              // kernels with the fact have it, others may have it, too
)

// parseWitness reads STRUCT, STRUCT.MEMBER, FUNCTION(), static FUNCTION() or ENUM:ENUMERATOR.
func parseWitness(text string, r role) (w witness, err error) {
	w = witness{text: text, role: r}
	name, isStatic := strings.CutPrefix(text, "static ")
	w.name = name
	if fn, ok := strings.CutSuffix(name, "()"); ok {
		w.name, w.kind = fn, function
		if isStatic {
			w.kind, w.text = static, "static:"+name
		}
	} else if of, part, ok := strings.Cut(name, ":"); ok {
		w.name, w.part, w.kind = of, part, enumerator
		w.enum, err = enumNamed(of)
	} else {
		w.name, w.part, _ = strings.Cut(name, ".")
	}
	if r == against {
		w.text = "!" + w.text
	}
	if err == nil && (isStatic && w.kind != static || strings.ContainsAny(w.name+w.part, " ,;()?!") || w.name == "") {
		err = fmt.Errorf("want STRUCT, STRUCT.MEMBER, FUNCTION(), static FUNCTION() or ENUM:ENUMERATOR")
	}
	return w, err
}
