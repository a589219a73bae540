// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode"

	"github.com/btfgen/btfgen/internal/corpus/naming"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Selector chooses kernels by their key; docs/cli.md has how it is written. The zero
// Selector matches every kernel. It is immutable.
type Selector struct {
	text  string
	terms []term
}

// term is one condition on one component of a key.
type term struct {
	field field
	op    string // one of = != < <= > >=, or opWithin
	value string
}

// opWithin is the operator of a bare 5.10: 5.10 as far as it goes, so 5.10.0-30-amd64 too.
const opWithin = "within"

type field int

const (
	fieldID field = iota
	fieldVersion
	fieldArch
	fieldRelease
)

var fields = map[string]field{
	"id": fieldID, "version": fieldVersion, "arch": fieldArch, "release": fieldRelease,
}

// String returns the text the selector was parsed from.
func (s Selector) String() string { return s.text }

// Parse reads a selector such as "debian>=11,x86_64" or "release>=5.4".
func Parse(text string) (Selector, error) {
	s := Selector{text: text}
	for t := range strings.SplitSeq(text, ",") {
		terms, err := parseTerm(strings.Trim(t, " "))
		if err != nil {
			return Selector{}, err
		}
		s.terms = append(s.terms, terms...)
	}
	return s, nil
}

func parseTerm(t string) ([]term, error) {
	if t == "" {
		return nil, errors.New("a term is missing (want terms separated by commas)")
	}
	name, op, value := cutOperator(t)
	switch op {
	case "":
		return parseGlobs(t)
	case "!":
		return nil, errors.New("'!' is not an operator (want !=)")
	}
	f, ok := fields[name]
	var terms []term
	switch {
	case name == "":
		f = fieldRelease // >=5.4
	case !ok:
		terms, f = []term{{fieldID, "=", name}}, fieldVersion // debian>=11
		if err := checkGlob(name); err != nil {
			return nil, err
		}
	}
	if value == "" {
		return nil, fmt.Errorf("no value after %s", op)
	}
	if err := checkGlob(value); err != nil {
		return nil, err
	}
	if op != "=" && op != "!=" {
		if err := checkOrder(value, f, op); err != nil {
			return nil, err
		}
	}
	return append(terms, term{f, op, value}), nil
}

// cutOperator cuts a term at its operator.
func cutOperator(t string) (name, op, value string) {
	i := strings.IndexAny(t, "<>=!")
	if i < 0 {
		return t, "", ""
	}
	op = "!"
	for _, o := range []string{"<=", ">=", "!=", "<", ">", "="} {
		if strings.HasPrefix(t[i:], o) {
			op = o
			break
		}
	}
	return strings.Trim(t[:i], " "), op, strings.Trim(t[i+len(op):], " ")
}

// parseGlobs reads a term without an operator: a key or its beginning if it has a slash, else an
// architecture if it is one, a release if it begins with a digit, and a distribution otherwise.
func parseGlobs(t string) (terms []term, err error) {
	parts := strings.Split(t, "/")
	for i, p := range parts {
		if i > int(fieldRelease) {
			return nil, errors.New("more than ID/VERSION_ID/ARCH/RELEASE")
		}
		if p == "*" { // it matches an unknown value, too
			continue
		}
		if err := checkGlob(p); err != nil {
			return nil, err
		}
		terms = append(terms, glob(p, field(i), len(parts) == 1))
	}
	return terms, nil
}

// glob returns the term for a component of a key, or for a word that stands alone.
func glob(t string, f field, alone bool) term {
	switch {
	case !alone:
	case kernel.KnownArch(t):
		f = fieldArch
	case naming.StartsWithDigit(t) && !strings.ContainsAny(t, globs):
		return term{fieldRelease, opWithin, t}
	case naming.StartsWithDigit(t):
		f = fieldRelease
	}
	return term{f, "=", t}
}

// globs are the characters that make a name a pattern.
const globs = "*?[]^"

// checkGlob refuses what no key has: a selector with a mistake in it would choose nothing, or too much.
func checkGlob(t string) error {
	if t == "" {
		return errors.New("a name or pattern is missing")
	}
	for _, c := range t {
		switch {
		case unicode.IsLetter(c) || unicode.IsDigit(c) || strings.ContainsRune("-._+~:@%"+globs, c):
		case strings.ContainsRune("<>=!", c):
			return fmt.Errorf("%q: a second operator in one term", c)
		case strings.ContainsRune("; |&", c):
			return fmt.Errorf("%q: want a comma between terms, or ? in place of this character in a name", c)
		case c == '/':
			return errors.New("a term with an operator cannot have '/'")
		default:
			return fmt.Errorf("%q is not allowed in a name (? matches any character)", c)
		}
	}
	if _, err := path.Match(t, ""); err != nil {
		return fmt.Errorf("%q: %w", t, err)
	}
	return nil
}

// checkOrder refuses bounds that nothing could be compared with.
func checkOrder(t string, f field, op string) error {
	switch {
	case f == fieldID || f == fieldArch:
		return fmt.Errorf("distributions and architectures have no order (want = or != rather than %s)", op)
	case strings.ContainsAny(t, globs):
		return fmt.Errorf("%q: a pattern has no order (want = or != rather than %s)", t, op)
	case !naming.Numbered(t):
		return fmt.Errorf("%q is not a version: it must begin with a number", t)
	}
	return nil
}

// Match says whether all terms hold. A term about a component that the key lacks does not.
func (s Selector) Match(k kernel.Key) bool {
	for _, t := range s.terms {
		if !t.match(k) {
			return false
		}
	}
	return true
}

// Undecided reports whether the key lacks what a term is about, or has a version without an order, and all other terms hold. Match
// is then false.
func (s Selector) Undecided(k kernel.Key) bool {
	undecided := false
	for _, t := range s.terms {
		if t.unknown(k) {
			undecided = true
		} else if !t.match(k) {
			return false
		}
	}
	return undecided
}

// unknown reports whether the key does not say if the term holds.
func (t term) unknown(k kernel.Key) bool {
	have := t.of(k)
	return have == "" || t.ordered() && !naming.Numbered(have)
}

// ordered reports whether the term compares versions, and not names.
func (t term) ordered() bool { return t.op != "=" && t.op != "!=" }

// of returns what the term compares: the component of a key, or the release of Linux that it shows.
func (t term) of(k kernel.Key) string {
	have := t.field.of(k)
	if t.field == fieldRelease && t.ordered() {
		return cmp.Or(k.Linux(), have)
	}
	return have
}

func (t term) match(k kernel.Key) bool {
	if t.unknown(k) {
		return false
	}
	have := t.of(k)
	switch t.op {
	case "=", "!=":
		ok, _ := path.Match(t.value, have)
		if canonical := t.field.canonical(); !ok && canonical != nil {
			ok, _ = path.Match(canonical(t.value), canonical(have))
		}
		return ok == (t.op == "=")
	}
	switch c := compareTo(naming.Unprefixed(have), naming.Unprefixed(t.value)); {
	case t.op == opWithin:
		return c == 0
	case c == 0:
		return len(t.op) == 2
	default:
		return c < 0 == (t.op[0] == '<')
	}
}

// of returns the component of a key.
func (f field) of(k kernel.Key) string {
	return [...]string{k.ID, k.VersionID, k.Arch, k.Release}[f]
}

// canonical returns what makes aliases of the component equal, or nil.
func (f field) canonical() func(string) string {
	return [...]func(string) string{fieldID: kernel.CanonicalID, fieldArch: kernel.CanonicalArch, fieldRelease: nil}[f]
}

// compareTo compares a version with a bound as far as the bound goes: 5.4.0-42 counts as 5.4.
func compareTo(version, bound string) int {
	if rest, ok := strings.CutPrefix(version, bound); ok && !naming.StartsWithDigit(rest) {
		return 0
	}
	return kernel.CompareVersions(version, bound)
}
