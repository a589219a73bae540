// SPDX-License-Identifier: Apache-2.0

package core

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/limits"
)

// The proof of kept types: a pattern finds types of the same content in the
// minimized BTF as in the kernel. Contents are encoded as bytes, by value and with
// all names, down to integers. Behind a pointer the name of a struct, union or
// enum is enough. Padding of the minimized BTF does not count.

// Compare returns the first type that the patterns name in the full BTF and that
// the minimized one does not have unchanged, or nil. The error is a
// [limits.Exceeded] or that of the context.
func (kp *Keep) Compare(ctx context.Context, full, small *Kernel) (*Difference, error) {
	if kp == nil || len(kp.patterns) == 0 {
		return nil, nil
	}
	w := keptWriter{
		contents: make(map[string]uint32), known: make(map[keptType]uint32),
		meter: limits.NewMeter(ctx, limits.Comparisons, "comparisons of kept types"), padded: true,
	}
	have := make(map[uint32]bool)
	_, err := kp.Find(ctx, small, func(kept *Kept) { have[w.kept(kept)] = true })
	if err := cmp.Or(err, w.stopped()); err != nil {
		return nil, err
	}
	w.padded = false
	var d *Difference
	_, err = kp.Find(ctx, full, func(kept *Kept) {
		if d != nil || w.stopped() != nil || have[w.kept(kept)] {
			return
		}
		t := kept.BTF.Type(kept.Type)
		d = &Difference{Relocation: "--keep " + kp.patterns[kept.pattern].text, Candidate: typeName(t), Full: fmt.Sprintf("type %d", t.ID), Minimized: "none like it"}
	})
	if err := cmp.Or(err, w.stopped()); err != nil {
		return nil, err
	}
	return d, nil
}

// keptWriter numbers the contents of types: equal contents have equal numbers.
type keptWriter struct {
	contents map[string]uint32
	known    map[keptType]uint32
	padded   bool // structs may have explicit padding
	meter    *limits.Meter
	deep     error // types are too deep inside each other
}

// keptType is a type, and whether a pointer leads to it.
type keptType struct {
	btf    *btf.BTF
	id     btf.TypeID
	behind bool
}

// stopped returns the error that ends the comparison, after which its results mean nothing.
func (w *keptWriter) stopped() error { return cmp.Or(w.deep, w.meter.Err()) }

func (w *keptWriter) number(content []byte) uint32 {
	n, ok := w.contents[string(content)]
	if !ok {
		n = uint32(len(w.contents))
		w.contents[string(content)] = n
	}
	return n
}

// kept returns the number of a type, or of the members or enumerator of a path.
func (w *keptWriter) kept(kept *Kept) uint32 {
	b := appendU32(nil, uint32(kept.pattern))
	if len(kept.Path) == 0 {
		return w.number(appendU32(b, w.of(keptType{kept.BTF, kept.Type, false}, 0)))
	}
	path := kept.Path
	for len(path) > 0 {
		step := path[0]
		for path = path[1:]; len(path) > 0 && path[0].What == NeedPointee; {
			path = path[1:]
		}
		t := kept.BTF.Type(step.Type)
		b = appendFrame(b, &t)
		if step.What == NeedEnumerator {
			b = appendEnumerator(b, &t, step.Idx)
			continue
		}
		m := t.Member(step.Idx)
		if b = appendMember(b, &t, m); len(path) == 0 {
			b = appendU32(b, w.of(keptType{kept.BTF, m.Type, false}, 0))
		} else {
			b = w.between(b, kept.BTF.Type(m.Type))
		}
	}
	return w.number(b)
}

// between appends the types between a member and the struct or union behind it.
func (w *keptWriter) between(b []byte, t btf.Type) []byte {
	for range limits.KeptDepth {
		k := t.Kind()
		if k.IsComposite() {
			break
		}
		b = appendName(append(b, byte(k)), &t, t.NameOff)
		id := t.Ref()
		if k == btf.KindArray {
			a := t.Array()
			b, id = appendU32(b, a.Nelems), a.Elem
		}
		t = t.BTF().Type(id)
	}
	return b
}

// of returns the number of a type's content. depth is how many types it is inside of.
func (w *keptWriter) of(kt keptType, depth int) uint32 {
	if n, ok := w.known[kt]; ok {
		return n
	}
	if depth > limits.KeptDepth {
		w.deep = &limits.Exceeded{Max: limits.KeptDepth, What: "kept types inside each other"}
	}
	t := kt.btf.Type(kt.id)
	if w.deep != nil || !w.meter.Step(1+int(t.Vlen())) {
		return 0
	}
	n := w.number(w.content(&t, kt.behind, depth+1))
	w.known[kt] = n
	return n
}

func (w *keptWriter) content(t *btf.Type, behind bool, depth int) []byte {
	k := t.Kind()
	of := func(b []byte, id btf.TypeID, behind bool) []byte {
		return appendU32(b, w.of(keptType{t.BTF(), id, behind}, depth))
	}
	if behind && t.NameOff != 0 && (k.IsComposite() || k == btf.KindFwd) { // equal to a forward declaration
		return appendName(strconv.AppendBool(nil, k == btf.KindUnion || k == btf.KindFwd && t.KindFlag()), t, t.NameOff)
	}
	b := appendFrame(nil, t)
	switch {
	case k.IsComposite():
		for i := range t.Vlen() {
			if m := t.Member(i); !w.padded || !isPadding(t, m) {
				b = of(appendMember(b, t, m), m.Type, false)
			}
		}
	case k.IsAnyEnum() && !(behind && t.NameOff != 0):
		for i := range t.Vlen() {
			b = appendEnumerator(b, t, i)
		}
	case k == btf.KindInt:
		b = appendU32(b, t.IntData())
	case k == btf.KindPtr:
		b = of(b, t.Ref(), true)
	case k == btf.KindTypedef, k.IsMod():
		b = of(b, t.Ref(), behind)
	case k.HasLinkage():
		b = of(appendU32(b, t.Linkage()), t.Ref(), behind)
	case k == btf.KindArray:
		a := t.Array()
		b = of(of(appendU32(b, a.Nelems), a.Elem, behind), a.Index, behind)
	case k == btf.KindFuncProto:
		b = of(b, t.Ref(), behind)
		for i := range t.Vlen() {
			p := t.Param(i)
			b = of(appendName(b, t, p.NameOff), p.Type, behind)
		}
	}
	return b
}

// isPadding reports whether m is what explicit padding puts into a gap.
func isPadding(t *btf.Type, m btf.Member) bool {
	in := t.BTF().Type(m.Type)
	return in.Kind() == btf.KindArray && t.BTF().NameIs(m.NameOff, "__pad"+strconv.FormatUint(uint64(m.BitOffset/8), 10))
}

// appendFrame appends kind, name and size. The flag of structs and unions says only
// that some members are bitfields.
func appendFrame(b []byte, t *btf.Type) []byte {
	k := t.Kind()
	b = strconv.AppendBool(append(b, byte(k)), t.KindFlag() && !k.IsComposite())
	if b = appendName(b, t, t.NameOff); k.Shape().Third == btf.Size {
		b = appendU32(b, t.Size())
	}
	return b
}

func appendMember(b []byte, t *btf.Type, m btf.Member) []byte {
	return appendName(appendU32(appendU32(b, m.BitOffset), m.BitSize), t, m.NameOff)
}

func appendEnumerator(b []byte, t *btf.Type, i uint32) []byte {
	e := t.Enumerator(i)
	return appendName(binary.LittleEndian.AppendUint64(b, e.Value), t, e.NameOff)
}

func appendName(b []byte, t *btf.Type, off uint32) []byte {
	return append(append(b, t.BTF().Name(off)...), 0)
}

func appendU32(b []byte, n uint32) []byte { return binary.LittleEndian.AppendUint32(b, n) }
