// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/btfgen/btfgen/pkg/kernel"
)

// Selector chooses kernels by their key; docs/selectors.md has how it is written. The zero
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

// Component returns the component of a key that a selector calls id, version, arch or release; false for other names.
func Component(k kernel.Key, name string) (value string, ok bool) {
	f, ok := fields[name]
	return f.of(k), ok
}

// String returns the text the selector was parsed from.
func (s Selector) String() string { return s.text }

// ParseSelector reads a selector such as "debian>=11,x86_64" or "release>=5.4". Its errors say at which
// character they are, counted from one.
func ParseSelector(text string) (Selector, error) {
	s := Selector{text: text}
	at := 0
	for t := range strings.SplitSeq(text, ",") {
		terms, err := parseTerm(span{t, at})
		var bad *syntaxError
		if errors.As(err, &bad) {
			return Selector{}, fmt.Errorf("selector %q: character %d: %s", text, utf8.RuneCountInString(text[:bad.at])+1, bad.text)
		}
		s.terms = append(s.terms, terms...)
		at += len(t) + 1
	}
	return s, nil
}

// ParseSelectors reads several.
func ParseSelectors(texts []string) ([]Selector, error) {
	var all []Selector
	for _, t := range texts {
		s, err := ParseSelector(t)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// span is a part of a selector, with its offset in bytes.
type span struct {
	text string
	at   int
}

func (t span) trim() span {
	left := strings.TrimLeft(t.text, " ")
	return span{strings.TrimRight(left, " "), t.at + len(t.text) - len(left)}
}

// from returns what begins n bytes later.
func (t span) from(n int) span { return span{t.text[n:], t.at + n} }

// syntaxError is what a selector cannot have, at an offset in bytes.
type syntaxError struct {
	at   int
	text string
}

func (e *syntaxError) Error() string { return e.text }

func (t span) errorf(format string, args ...any) error {
	return &syntaxError{t.at, fmt.Sprintf(format, args...)}
}

func parseTerm(t span) ([]term, error) {
	t = t.trim()
	if t.text == "" {
		return nil, t.errorf("no term (commas stand between terms only)")
	}
	name, op, value := t.cutOperator()
	switch op {
	case "":
		return parseGlobs(t)
	case "!":
		return nil, t.from(strings.IndexByte(t.text, '!')).errorf("'!' is no operator (want !=)")
	}
	f, ok := fields[name.text]
	var terms []term
	switch {
	case name.text == "":
		f = fieldRelease // >=5.4
	case !ok:
		terms, f = []term{{fieldID, "=", name.text}}, fieldVersion // debian>=11
		if err := name.checkGlob(); err != nil {
			return nil, err
		}
	}
	if value.text == "" {
		return nil, value.errorf("no value after %s", op)
	}
	if err := value.checkGlob(); err != nil {
		return nil, err
	}
	if op != "=" && op != "!=" {
		if err := value.checkOrder(f, op); err != nil {
			return nil, err
		}
	}
	return append(terms, term{f, op, value.text}), nil
}

// cutOperator cuts a term at its operator.
func (t span) cutOperator() (name span, op string, value span) {
	i := strings.IndexAny(t.text, "<>=!")
	if i < 0 {
		return t, "", span{}
	}
	name = span{t.text[:i], t.at}.trim()
	for _, op := range []string{"<=", ">=", "!=", "<", ">", "="} {
		if strings.HasPrefix(t.text[i:], op) {
			return name, op, t.from(i + len(op)).trim()
		}
	}
	return name, "!", t.from(i + 1).trim()
}

// parseGlobs reads a term without an operator: a key or its beginning if it has a slash, else an
// architecture if it is one, a release if it begins with a digit, and a distribution otherwise.
func parseGlobs(t span) ([]term, error) {
	var terms []term
	alone, rest := !strings.Contains(t.text, "/"), t
	for f := fieldID; ; f++ {
		p, _, more := strings.Cut(rest.text, "/")
		part := span{p, rest.at}
		if f > fieldRelease {
			return nil, part.errorf("more than ID/VERSION_ID/ARCH/RELEASE")
		}
		if p != "*" { // which is also where nothing is known
			if err := part.checkGlob(); err != nil {
				return nil, err
			}
			terms = append(terms, part.glob(f, alone))
		}
		if !more {
			return terms, nil
		}
		rest = rest.from(len(p) + 1)
	}
}

// glob returns the term for a component of a key, or for a word that stands alone.
func (t span) glob(f field, alone bool) term {
	switch {
	case !alone:
	case kernel.KnownArch(t.text):
		f = fieldArch
	case isDigit(t.text[0]) && !strings.ContainsAny(t.text, globs):
		return term{fieldRelease, opWithin, t.text}
	case isDigit(t.text[0]):
		f = fieldRelease
	}
	return term{f, "=", t.text}
}

// globs are the characters that make a name a pattern.
const globs = "*?[]^"

// checkGlob refuses what no key has: a selector with a mistake in it would choose nothing, or too much.
func (t span) checkGlob() error {
	if t.text == "" {
		return t.errorf("nothing where a name or pattern should be")
	}
	for i, c := range t.text {
		at := t.from(i)
		switch {
		case unicode.IsLetter(c) || unicode.IsDigit(c) || strings.ContainsRune("-._+~:@%"+globs, c):
		case strings.ContainsRune("<>=!", c):
			return at.errorf("%q: a second operator in one term", c)
		case strings.ContainsRune("; |&", c):
			return at.errorf("%q: between terms stands a comma", c)
		case c == '/':
			return at.errorf("a key stands without an operator")
		default:
			return at.errorf("%q is not allowed in a name (? matches any character)", c)
		}
	}
	if _, err := path.Match(t.text, ""); err != nil {
		return t.errorf("%q: %v", t.text, err)
	}
	return nil
}

// checkOrder refuses bounds that nothing could be compared with.
func (t span) checkOrder(f field, op string) error {
	switch {
	case f == fieldID || f == fieldArch:
		return t.errorf("distributions and architectures have no order (want = or != rather than %s)", op)
	case strings.ContainsAny(t.text, globs):
		return t.errorf("%q: a pattern has no order (want = or != rather than %s)", t.text, op)
	case !numbered(t.text):
		return t.errorf("%q is no version: it has to begin with a number", t.text)
	}
	return nil
}

// numbered reports whether a version can be ordered: 12, 5.4.0-42 and V10 can, sid cannot.
func numbered(version string) bool {
	v := unprefixed(version)
	return v != "" && isDigit(v[0])
}

// unprefixed cuts off the v of v10.
func unprefixed(version string) string {
	if len(version) > 1 && version[0]|0x20 == 'v' && isDigit(version[1]) {
		return version[1:]
	}
	return version
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

func (t term) match(k kernel.Key) bool {
	have := t.field.of(k)
	if have == "" {
		return false
	}
	switch t.op {
	case "=", "!=":
		ok, _ := path.Match(t.value, have)
		if canonical := t.field.canonical(); !ok && canonical != nil {
			ok, _ = path.Match(canonical(t.value), canonical(have))
		}
		return ok == (t.op == "=")
	}
	if !numbered(have) {
		return false
	}
	switch c := compareTo(unprefixed(have), unprefixed(t.value)); {
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
	if rest, ok := strings.CutPrefix(version, bound); ok && (rest == "" || !isDigit(rest[0])) {
		return 0
	}
	return kernel.CompareVersions(version, bound)
}
