// SPDX-License-Identifier: Apache-2.0

package core

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/limits"
)

// The proof of what is kept: each type that a pattern names in the kernel has one in
// the minimized BTF that says the same of it. What it is made of is compared by
// value, names and all, down to integers. Behind a pointer the name of a struct, union
// or enum is enough, since a pointer says no more.

// Compare returns the first type that the patterns name in the full BTF and the
// minimized one does not have as it is, or nil. The error is a [limits.Exceeded] or
// that of the context.
func (kp *Keep) Compare(ctx context.Context, full, small *Kernel) (*Difference, error) {
	if kp == nil || len(kp.patterns) == 0 {
		return nil, nil
	}
	c := keptComparison{small: make(map[keptName][]btf.Type), seen: make(map[keptPair]bool)}
	c.meter = limits.NewMeter(ctx, limits.Comparisons, "comparisons of kept types")
	if err := c.index(kp, small); err != nil {
		return nil, err
	}
	var d *Difference
	_, err := kp.Find(ctx, full, func(kept *Kept) {
		if d != nil || c.stopped() != nil || c.has(kept) || c.stopped() != nil {
			return
		}
		t := kept.BTF.Type(kept.Type)
		d = &Difference{Relocation: "--keep " + kp.patterns[kept.pattern].text, Candidate: typeName(t), Full: fmt.Sprintf("type %d", t.ID), Minimized: "none like it"}
	})
	if err := cmp.Or(err, c.stopped()); err != nil {
		return nil, err
	}
	return d, nil
}

// keptComparison is one Keep.Compare.
type keptComparison struct {
	small map[keptName][]btf.Type // those that may be what was kept
	seen  map[keptPair]bool       // whether two types are the same; those being compared are taken for it
	trail []keptPair              // those that are true in seen
	meter *limits.Meter
	deep  error // types are too deep inside each other
}

// stopped says why the comparison must not go on, if so. What it came to since means nothing.
func (c *keptComparison) stopped() error { return cmp.Or(c.deep, c.meter.Err()) }

// keptName is what a type is looked up by. That of an anonymous enum is one of its
// enumerators, as kernels have thousands.
type keptName struct {
	kind       btf.Kind
	name       string
	enumerator string
}

// keptNames returns what t can be looked up by.
func (c *keptComparison) keptNames(t btf.Type) (l []keptName) {
	if t.NameOff != 0 || !t.Kind().IsAnyEnum() {
		return []keptName{{kind: t.Kind(), name: string(t.Name())}}
	}
	for i := range t.Vlen() {
		if !c.meter.Step(1) {
			break
		}
		l = append(l, enumeratorName(t, i))
	}
	return l
}

func enumeratorName(t btf.Type, i uint32) keptName {
	return keptName{kind: t.Kind(), enumerator: string(t.BTF().Name(t.Enumerator(i).NameOff))}
}

// keptPair is a type of the full BTF and one of the minimized. behind says that they
// stand behind a pointer.
type keptPair struct {
	btf         *btf.BTF
	full, small btf.TypeID
	behind      bool
}

// index notes the types of the minimized BTF by name.
func (c *keptComparison) index(kp *Keep, k *Kernel) error {
	b := &k.views[0].BTF
	for id := b.FirstID(); int(id) < b.NumTypes(); id++ {
		t := b.Type(id)
		if k := t.Kind(); int(k) < btf.NumKinds && (kp.byKind[k].literal != nil || kp.byKind[k].globs != nil) {
			for _, n := range c.keptNames(t) {
				c.small[n] = append(c.small[n], t)
			}
		}
		if !c.meter.Step(1) {
			return c.meter.Err()
		}
	}
	return nil
}

// has reports whether the minimized BTF has what is kept.
func (c *keptComparison) has(kept *Kept) bool {
	t := kept.BTF.Type(kept.Type)
	name := keptName{kind: t.Kind(), name: string(t.Name())}
	if t.NameOff == 0 && len(kept.Path) > 0 {
		name = enumeratorName(t, kept.Path[0].Idx)
	}
	for _, s := range c.small[name] {
		if len(kept.Path) == 0 && c.same(t, s, false, 0) || len(kept.Path) > 0 && c.follow(t, s, kept.Path) {
			return true
		}
	}
	return false
}

// follow reports whether path leads from s to the member or enumerator to which it
// leads from t.
func (c *keptComparison) follow(t, s btf.Type, path []Need) bool {
	if !sameFrame(t, s) {
		return false
	}
	step, rest := path[0], path[1:]
	for len(rest) > 0 && rest[0].What == NeedPointee {
		rest = rest[1:]
	}
	if step.What == NeedEnumerator {
		for i := range s.Vlen() {
			if c.meter.Step(1) && sameEnumerator(t, s, step.Idx, i) {
				return true
			}
		}
		return false
	}
	m := t.Member(step.Idx)
	for i := range s.Vlen() {
		if !c.meter.Step(1) {
			return false
		}
		if o := s.Member(i); sameMember(t, s, m, o) {
			mt, ot := t.BTF().Type(m.Type), s.BTF().Type(o.Type)
			if len(rest) == 0 {
				if c.same(mt, ot, false, 0) {
					return true
				}
			} else if mt, ot, ok := c.inside(mt, ot); ok && c.follow(mt, ot, rest) {
				return true
			}
		}
	}
	return false
}

// inside goes through what stands between a member and what has members of its own,
// and reports whether that is the same.
func (c *keptComparison) inside(t, s btf.Type) (_, _ btf.Type, ok bool) {
	for range limits.KeptDepth {
		k := t.Kind()
		if s.Kind() != k || !sameName(t, s) {
			return t, s, false
		}
		switch {
		case k.IsComposite():
			return t, s, true
		case k == btf.KindArray:
			a, b := t.Array(), s.Array()
			if a.Nelems != b.Nelems {
				return t, s, false
			}
			t, s = t.BTF().Type(a.Elem), s.BTF().Type(b.Elem)
		case k == btf.KindPtr, k == btf.KindTypedef, k.IsMod():
			t, s = t.BTF().Type(t.Ref()), s.BTF().Type(s.Ref())
		default:
			return t, s, false
		}
	}
	return t, s, false
}

// same reports whether s says of a type what t says. behind is as for keptPair, and depth
// is how many types both are inside.
func (c *keptComparison) same(t, s btf.Type, behind bool, depth int) bool {
	if depth > limits.KeptDepth {
		c.deep = &limits.Exceeded{Max: limits.KeptDepth, What: "kept types inside each other"}
	}
	if c.deep != nil || !c.meter.Step(1) {
		return false
	}
	pair := keptPair{t.BTF(), t.ID, s.ID, behind}
	if same, ok := c.seen[pair]; ok {
		return same
	}
	from := len(c.trail)
	c.seen[pair] = true
	c.trail = append(c.trail, pair)
	if c.compare(t, s, behind, depth+1) {
		return true
	}
	for _, p := range c.trail[from:] { // on the assumption that this one is
		delete(c.seen, p)
	}
	c.trail = c.trail[:from]
	c.seen[pair] = false
	return false
}

func (c *keptComparison) compare(t, s btf.Type, behind bool, depth int) bool {
	k := t.Kind()
	if !sameName(t, s) {
		return false
	}
	if behind && t.NameOff != 0 && (k.IsComposite() || k.IsAnyEnum()) {
		if k.IsComposite() && s.Kind() == btf.KindFwd {
			return s.KindFlag() == (k == btf.KindUnion)
		}
		return sameFrame(t, s)
	}
	of := func(a, b btf.TypeID) bool { return c.same(t.BTF().Type(a), s.BTF().Type(b), behind, depth) }
	switch {
	case s.Kind() != k:
		return false
	case k.IsComposite():
		return sameFrame(t, s) && c.members(t, s, depth)
	case k.IsAnyEnum():
		if !sameFrame(t, s) || t.Vlen() != s.Vlen() {
			return false
		}
		for i := range t.Vlen() {
			if !c.meter.Step(1) || !sameEnumerator(t, s, i, i) {
				return false
			}
		}
		return true
	case k == btf.KindVoid:
		return true
	case k == btf.KindInt:
		return t.Size() == s.Size() && t.IntData() == s.IntData()
	case k == btf.KindFloat:
		return t.Size() == s.Size()
	case k == btf.KindFwd:
		return t.KindFlag() == s.KindFlag()
	case k == btf.KindPtr:
		behind = true
		return of(t.Ref(), s.Ref())
	case k == btf.KindTypedef, k.IsMod():
		return t.KindFlag() == s.KindFlag() && of(t.Ref(), s.Ref())
	case k.HasLinkage():
		return t.Linkage() == s.Linkage() && of(t.Ref(), s.Ref())
	case k == btf.KindArray:
		a, b := t.Array(), s.Array()
		return a.Nelems == b.Nelems && of(a.Elem, b.Elem) && of(a.Index, b.Index)
	case k == btf.KindFuncProto:
		if t.Vlen() != s.Vlen() || !of(t.Ref(), s.Ref()) {
			return false
		}
		for i := range t.Vlen() {
			p, o := t.Param(i), s.Param(i)
			if !bytes.Equal(t.BTF().Name(p.NameOff), s.BTF().Name(o.NameOff)) || !of(p.Type, o.Type) {
				return false
			}
		}
		return true
	}
	return false
}

// members reports whether s has the members of t in their order, and besides them
// padding alone.
func (c *keptComparison) members(t, s btf.Type, depth int) bool {
	i := uint32(0)
	for j := range s.Vlen() {
		if !c.meter.Step(1) {
			return false
		}
		o := s.Member(j)
		if i < t.Vlen() {
			m := t.Member(i)
			if sameMember(t, s, m, o) && c.same(t.BTF().Type(m.Type), s.BTF().Type(o.Type), false, depth) {
				i++
				continue
			}
		}
		if !isPadding(s, o) {
			return false
		}
	}
	return i == t.Vlen()
}

// isPadding reports whether m is what explicit padding puts into a gap.
func isPadding(s btf.Type, m btf.Member) bool {
	t := s.BTF().Type(m.Type)
	return t.Kind() == btf.KindArray && s.BTF().NameIs(m.NameOff, "__pad"+strconv.FormatUint(uint64(m.BitOffset/8), 10))
}

func sameName(t, s btf.Type) bool { return bytes.Equal(t.Name(), s.Name()) }

// sameFrame reports whether what has members or enumerators is of one kind, name and
// size. Of an enum the flag counts, which says that its values are signed.
func sameFrame(t, s btf.Type) bool {
	return t.Kind() == s.Kind() && sameName(t, s) && t.Size() == s.Size() && (t.KindFlag() == s.KindFlag() || !t.Kind().IsAnyEnum())
}

func sameMember(t, s btf.Type, m, o btf.Member) bool {
	return m.BitOffset == o.BitOffset && m.BitSize == o.BitSize && bytes.Equal(t.BTF().Name(m.NameOff), s.BTF().Name(o.NameOff))
}

func sameEnumerator(t, s btf.Type, i, j uint32) bool {
	m, o := t.Enumerator(i), s.Enumerator(j)
	return m.Value == o.Value && bytes.Equal(t.BTF().Name(m.NameOff), s.BTF().Name(o.NameOff))
}
