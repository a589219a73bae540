// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/limits"
)

// Keep is patterns of types that are kept whatever relocations need. It is
// immutable and safe for many goroutines. A nil Keep has none.
type Keep struct {
	patterns []keepPattern
	byKind   [btf.NumKinds]keepNames
}

// keepPattern is one pattern: "struct:task_struct.se.vruntime".
type keepPattern struct {
	text string
	name string   // shell pattern of the type's name
	path []string // shell patterns of a member and those inside it, or of an enumerator; nil for the whole type
}

// keepNames are the patterns for types of one kind, by number.
type keepNames struct {
	literal map[string][]int
	globs   []int
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

// ParseKeep reads patterns: "KIND:NAME", or "KIND:NAME.MEMBER,MEMBER…" for structs,
// unions and enums. Each member becomes a pattern of its own.
func ParseKeep(patterns ...string) (*Keep, error) {
	kp := new(Keep)
	for _, p := range patterns {
		l, err := parseKeep(p)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", p, err)
		}
		kp.patterns = append(kp.patterns, l...)
	}
	byText := func(a, b keepPattern) int { return strings.Compare(a.text, b.text) }
	slices.SortFunc(kp.patterns, byText)
	kp.patterns = slices.CompactFunc(kp.patterns, func(a, b keepPattern) bool { return a.text == b.text })
	for i := range kp.patterns {
		p := &kp.patterns[i]
		kind, _, _ := strings.Cut(p.text, ":")
		for _, k := range keepKinds[kind] {
			kp.byKind[k].add(p.name, i)
		}
	}
	return kp, nil
}

func (n *keepNames) add(name string, pattern int) {
	if strings.ContainsAny(name, `*?[\`) {
		n.globs = append(n.globs, pattern)
		return
	}
	if n.literal == nil {
		n.literal = make(map[string][]int)
	}
	n.literal[name] = append(n.literal[name], pattern)
}

func parseKeep(s string) ([]keepPattern, error) {
	kind, rest, ok := strings.Cut(s, ":")
	if keepKinds[kind] == nil || !ok {
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
		return []keepPattern{{text: s, name: name}}, nil
	}
	var l []keepPattern
	for m := range strings.SplitSeq(members, ",") {
		p := keepPattern{kind + ":" + name + "." + m, name, strings.Split(m, ".")}
		for _, word := range p.path {
			if _, err := path.Match(word, ""); err != nil || word == "" {
				return nil, fmt.Errorf("%q is not a pattern of members", m)
			}
		}
		if kind == "enum" && len(p.path) > 1 {
			return nil, fmt.Errorf("enumerators have no members")
		}
		l = append(l, p)
	}
	return l, nil
}

// Patterns returns the distinct patterns, in their order.
func (kp *Keep) Patterns() (l []string) {
	if kp == nil {
		return nil
	}
	for i := range kp.patterns {
		l = append(l, kp.patterns[i].text)
	}
	return l
}

// Hash returns a hash of the relocations and patterns. Without patterns it is [Hash].
func (kp *Keep) Hash(objects ...*Object) [sha256.Size]byte {
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
	BTF  *btf.BTF   // of vmlinux or a module
	Type btf.TypeID // as the pattern names it
	Path []Need     // leads to a member or enumerator; valid during the call. Empty for all of the type

	pattern int
}

// Find calls found for everything that the patterns name in a kernel and returns
// the patterns that match nothing. The error is a [limits.Exceeded] or the context's.
func (kp *Keep) Find(ctx context.Context, k *Kernel, found func(*Kept)) (unmatched []string, err error) {
	if kp == nil || len(kp.patterns) == 0 {
		return nil, nil
	}
	f := finder{Keep: kp, matched: make([]bool, len(kp.patterns)), found: found}
	f.meter = limits.NewMeter(ctx, limits.Marks, "steps to find the types to keep")
	for _, v := range k.views {
		if err := f.view(&v.BTF); err != nil {
			return nil, err
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
	*Keep
	matched []bool // by pattern
	found   func(*Kept)
	meter   *limits.Meter
	kept    Kept
}

func (f *finder) view(b *btf.BTF) error {
	for id := b.FirstID(); int(id) < b.NumTypes(); id++ {
		t := b.Type(id)
		k := t.Kind()
		if int(k) >= btf.NumKinds || f.byKind[k].literal == nil && f.byKind[k].globs == nil {
			continue
		}
		names := &f.byKind[k]
		if !f.meter.Step(1 + len(names.globs)) {
			return f.meter.Err()
		}
		name := t.Name()
		if len(name) > limits.NameBytes {
			return &limits.Exceeded{Max: limits.NameBytes, What: "bytes in a name"}
		}
		for _, i := range names.literal[string(name)] {
			f.pattern(b, t, i)
		}
		for _, i := range names.globs {
			if matches(f.patterns[i].name, name) {
				f.pattern(b, t, i)
			}
		}
	}
	return nil
}

// matches reports whether a name matches a shell pattern. A slash in it is like any other character.
func matches(pattern string, name []byte) bool {
	if len(name) == 0 {
		return pattern == ""
	}
	ok, _ := path.Match(pattern, strings.ReplaceAll(string(name), "/", "\x00"))
	return ok
}

// pattern finds the parts of a type, whose name matches, that a pattern names.
func (f *finder) pattern(b *btf.BTF, t btf.Type, i int) {
	p := &f.patterns[i]
	f.kept = Kept{BTF: b, Type: t.ID, Path: f.kept.Path[:0], pattern: i}
	switch {
	case p.path == nil:
		f.hit()
	case t.Kind().IsAnyEnum():
		for n := range t.Vlen() {
			if !f.meter.Step(1) {
				return
			}
			if matches(p.path[0], b.Name(t.Enumerator(n).NameOff)) {
				f.kept.Path = append(f.kept.Path[:0], Need{t.ID, NeedEnumerator, n})
				f.hit()
			}
		}
	default:
		f.members(t, p.path)
	}
}

func (f *finder) hit() {
	f.matched[f.kept.pattern] = true
	if f.found != nil {
		f.found(&f.kept)
	}
}

// members finds the members of t that a path names, also inside anonymous members,
// as deep as libbpf follows them.
func (f *finder) members(t btf.Type, words []string) {
	from := len(f.kept.Path)
	if from >= maxSpec {
		return
	}
	for i := range t.Vlen() {
		if !f.meter.Step(1) {
			return
		}
		m := t.Member(i)
		name := t.BTF().Name(m.NameOff)
		f.kept.Path = append(f.kept.Path[:from], Need{t.ID, NeedMember, i})
		switch {
		case len(name) == 0:
			if in, ok := t.BTF().SkipMods(m.Type); ok && in.Kind().IsComposite() {
				f.members(in, words)
			}
		case !matches(words[0], name):
		case len(words) == 1:
			f.hit()
		default:
			if in := f.inside(t.BTF(), m.Type); in.Kind().IsComposite() {
				f.members(in, words[1:])
			}
		}
	}
	f.kept.Path = f.kept.Path[:from]
}

// inside returns the type behind the arrays and pointers of a member and adds the
// pointers to the path.
func (f *finder) inside(b *btf.BTF, id btf.TypeID) btf.Type {
	for range maxSpec {
		t, _ := b.SkipMods(id)
		switch t.Kind() {
		case btf.KindPtr:
			f.kept.Path = append(f.kept.Path, Need{t.ID, NeedPointee, 0})
			id = t.Ref()
		case btf.KindArray:
			id = t.Array().Elem
		default:
			return t
		}
	}
	return btf.Type{}
}
