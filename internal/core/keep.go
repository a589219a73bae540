// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/limits"
)

// KeepPatterns are patterns of types that are kept whatever relocations need. They are
// immutable and safe for many goroutines. A nil KeepPatterns has none.
type KeepPatterns struct{ patterns []keepPattern }

// keepPattern is one pattern: "struct:task_struct.comm".
type keepPattern struct {
	text  string
	kinds []btf.Kind
	name  string // shell pattern of the type's name
	part  string // shell pattern of a member or an enumerator; "" for the whole type
}

// keepKinds are the kinds for the first word of a pattern.
var keepKinds = map[string][]btf.Kind{
	"enum":    {btf.KindEnum, btf.KindEnum64},
	"struct":  {btf.KindStruct},
	"union":   {btf.KindUnion},
	"typedef": {btf.KindTypedef},
	"func":    {btf.KindFunc},
	"var":     {btf.KindVar},
}

// KeepError is the error of ParseKeep.
type KeepError struct {
	Pattern string
	Err     error
}

func (e *KeepError) Error() string { return fmt.Sprintf("%q: %v", e.Pattern, e.Err) }
func (e *KeepError) Unwrap() error { return e.Err }

// ParseKeep reads patterns: "KIND:NAME", or "KIND:NAME.MEMBER,MEMBER…" for structs,
// unions and enums. Each member becomes a pattern of its own.
func ParseKeep(patterns ...string) (*KeepPatterns, error) {
	byText := make(map[string]keepPattern)
	for _, p := range patterns {
		l, err := parseKeep(p)
		if err != nil {
			return nil, &KeepError{p, err}
		}
		for _, kp := range l {
			byText[kp.text] = kp
		}
	}
	kp := new(KeepPatterns)
	for _, text := range slices.Sorted(maps.Keys(byText)) {
		kp.patterns = append(kp.patterns, byText[text])
	}
	return kp, nil
}

func parseKeep(s string) ([]keepPattern, error) {
	kind, rest, ok := strings.Cut(s, ":")
	kinds := keepKinds[kind]
	if kinds == nil || !ok {
		return nil, fmt.Errorf("want KIND:NAME, where KIND is enum, struct, union, typedef, func or var")
	}
	name, members, ok := rest, "", false
	switch kind {
	case "enum", "struct", "union":
		name, members, ok = strings.Cut(rest, ".")
	}
	if name == "" && !(kind == "enum" && ok) {
		return nil, fmt.Errorf("there is no name")
	}
	if _, err := path.Match(name, ""); err != nil {
		return nil, fmt.Errorf("%q is not a pattern", name)
	}
	if !ok {
		return []keepPattern{{s, kinds, name, ""}}, nil
	}
	var l []keepPattern
	for m := range strings.SplitSeq(members, ",") {
		if _, err := path.Match(m, ""); err != nil || m == "" || strings.Contains(m, ".") {
			return nil, fmt.Errorf("%q is not a pattern of members", m)
		}
		l = append(l, keepPattern{kind + ":" + name + "." + m, kinds, name, m})
	}
	return l, nil
}

// Patterns returns the distinct patterns, in their order.
func (kp *KeepPatterns) Patterns() (l []string) {
	if kp == nil {
		return nil
	}
	for i := range kp.patterns {
		l = append(l, kp.patterns[i].text)
	}
	return l
}

// Hash returns a hash of the relocations and patterns. Without patterns it is [Hash].
func (kp *KeepPatterns) Hash(objects ...*Object) [sha256.Size]byte {
	sum := Hash(objects...)
	if kp == nil || len(kp.patterns) == 0 {
		return sum
	}
	b := sum[:]
	for _, p := range kp.Patterns() {
		b = binary.LittleEndian.AppendUint64(b, uint64(len(p)))
		b = append(b, p...)
	}
	return sha256.Sum256(b)
}

// Kept is a type that a pattern names, and the part of it to keep.
type Kept struct {
	BTF  *btf.BTF   // vmlinux or a module
	Type btf.TypeID // the type that the pattern names
	Path []Need     // a member, after the anonymous ones that it is in, or an enumerator; valid during the call. Empty for all of the type

	pattern int
}

// Find calls found for everything that the patterns name in a kernel and returns
// the patterns that match nothing. The error is a [limits.Exceeded] or the context's.
func (kp *KeepPatterns) Find(ctx context.Context, k *Target, found func(*Kept)) (unmatched []string, err error) {
	if kp == nil || len(kp.patterns) == 0 {
		return nil, nil
	}
	f := finder{matched: make([]bool, len(kp.patterns)), found: found}
	f.meter = limits.NewMeter(ctx, limits.Marks, "steps to find the types to keep")
	for _, b := range k.Views() {
		for id := b.FirstID(); int(id) < b.NumTypes() && f.meter.Step(1); id++ {
			t := b.Type(id)
			for i := range kp.patterns {
				if p := &kp.patterns[i]; slices.Contains(p.kinds, t.Kind()) && matches(p.name, t.Name()) {
					f.kept = Kept{BTF: b, Type: id, Path: f.kept.Path[:0], pattern: i}
					f.parts(t, p.part)
				}
			}
		}
	}
	for i, ok := range f.matched {
		if !ok {
			unmatched = append(unmatched, kp.patterns[i].text)
		}
	}
	return unmatched, f.meter.Err()
}

// finder is one Find.
type finder struct {
	matched []bool // whether each pattern has matched
	found   func(*Kept)
	meter   *limits.Meter
	kept    Kept
}

// matches reports whether a name matches a shell pattern. A slash in it is like any other character. A name that is too long
// matches nothing.
func matches(pattern string, name []byte) bool {
	if len(name) == 0 || !strings.ContainsAny(pattern, `*?[\`) {
		return pattern == string(name)
	}
	ok, _ := path.Match(pattern, strings.ReplaceAll(string(name), "/", "\x00"))
	return ok && len(name) <= limits.NameBytes
}

// parts finds the parts of a type that a pattern names: enumerators, or members, also inside anonymous ones as deep as
// libbpf follows them.
func (f *finder) parts(t btf.Type, part string) {
	from := len(f.kept.Path)
	if part == "" {
		f.hit()
		return
	}
	for i := range t.Vlen() {
		if from >= maxSpec || !f.meter.Step(1) {
			return
		}
		if t.Kind().IsAnyEnum() {
			f.kept.Path = append(f.kept.Path[:from], Need{t.ID, NeedEnumerator, i})
			if matches(part, t.BTF().Name(t.Enumerator(i).NameOff)) {
				f.hit()
			}
			continue
		}
		m := t.Member(i)
		name := t.BTF().Name(m.NameOff)
		f.kept.Path = append(f.kept.Path[:from], Need{t.ID, NeedMember, i})
		if in, ok := t.BTF().SkipMods(m.Type); len(name) == 0 && ok && in.Kind().IsComposite() {
			f.parts(in, part)
		} else if len(name) > 0 && matches(part, name) {
			f.hit()
		}
	}
	f.kept.Path = f.kept.Path[:from]
}

func (f *finder) hit() {
	f.matched[f.kept.pattern] = true
	if f.found != nil {
		f.found(&f.kept)
	}
}
