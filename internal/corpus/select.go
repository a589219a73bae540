package corpus

import (
	"fmt"
	"path"
	"strings"

	"github.com/btfgen/btfgen/pkg/kernel"
)

// Selector chooses kernels by their key; see the package comment for how it is written. The zero
// Selector matches every kernel. It is immutable.
type Selector struct {
	text  string
	terms []term
}

// term is one condition on one component of a key.
type term struct {
	field field
	op    string
	value string
}

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

// ParseSelector reads a selector such as "debian>=11,x86_64" or "release>=5.4".
func ParseSelector(text string) (Selector, error) {
	s := Selector{text: text}
	for _, t := range strings.Split(text, ",") {
		terms, err := parseTerm(strings.TrimSpace(t))
		if err != nil {
			return Selector{}, fmt.Errorf("selector %q: %w", text, err)
		}
		s.terms = append(s.terms, terms...)
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

func parseTerm(t string) ([]term, error) {
	name, op, value := cutOperator(t)
	if op == "" {
		return parseGlobs(t)
	}
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	if value == "" || strings.ContainsAny(value, "<>=!") {
		return nil, fmt.Errorf("%q: no value after %s", t, op)
	}
	var terms []term
	f, ok := fields[name]
	switch {
	case name == "":
		f = fieldRelease // >=5.4
	case !ok:
		terms, f = []term{{fieldID, "=", name}}, fieldVersion // debian>=11
	case op != "=" && op != "!=" && (f == fieldID || f == fieldArch):
		return nil, fmt.Errorf("%q: %s has no order", t, name)
	}
	terms = append(terms, term{f, op, value})
	return terms, checkGlobs(terms)
}

// cutOperator cuts a term at its operator.
func cutOperator(t string) (name, op, value string) {
	i := strings.IndexAny(t, "<>=!")
	if i < 0 {
		return t, "", ""
	}
	for _, op := range []string{"<=", ">=", "!=", "<", ">", "="} {
		if v, ok := strings.CutPrefix(t[i:], op); ok {
			return t[:i], op, v
		}
	}
	return t[:i], "!", "" // refused, for its missing value
}

// parseGlobs reads a term without an operator: a key or its beginning if it has a slash, else an
// architecture if it is one, a release if it begins with a digit, and a distribution otherwise.
func parseGlobs(t string) ([]term, error) {
	parts := strings.Split(t, "/")
	if len(parts) > 4 {
		return nil, fmt.Errorf("%q: more than ID/VERSION_ID/ARCH/RELEASE", t)
	}
	var terms []term
	for i, p := range parts {
		f := field(i)
		switch {
		case p == "":
			return nil, fmt.Errorf("%q: empty", t)
		case p == "*":
			continue // also where nothing is known
		case len(parts) > 1:
		case kernel.KnownArch(p):
			f = fieldArch
		case isDigit(p[0]):
			f = fieldRelease
		}
		terms = append(terms, term{f, "=", p})
	}
	return terms, checkGlobs(terms)
}

func checkGlobs(terms []term) error {
	for _, t := range terms {
		if _, err := path.Match(t.value, ""); err != nil {
			return fmt.Errorf("%q: %w", t.value, err)
		}
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

func (t term) match(k kernel.Key) bool {
	var have string
	var canonical func(string) string
	switch t.field {
	case fieldID:
		have, canonical = k.ID, kernel.CanonicalID
	case fieldVersion:
		have = k.VersionID
	case fieldArch:
		have, canonical = k.Arch, kernel.CanonicalArch
	case fieldRelease:
		have = k.Release
	}
	if have == "" {
		return false
	}
	switch t.op {
	case "=", "!=":
		ok, _ := path.Match(t.value, have)
		if !ok && canonical != nil {
			ok, _ = path.Match(canonical(t.value), canonical(have))
		}
		return ok == (t.op == "=")
	}
	c := compareTo(have, t.value)
	return c < 0 && t.op[0] == '<' || c > 0 && t.op[0] == '>' || c == 0 && len(t.op) == 2
}

// compareTo compares a version with a bound as far as the bound goes: 5.4.0-42 counts as 5.4.
func compareTo(version, bound string) int {
	if rest, ok := strings.CutPrefix(version, bound); ok && (rest == "" || !isDigit(rest[0])) {
		return 0
	}
	return kernel.CompareVersions(version, bound)
}
