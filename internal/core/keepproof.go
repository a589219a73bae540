// SPDX-License-Identifier: Apache-2.0

package core

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/btf/canonical"
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
	b, leaf := binary.LittleEndian.AppendUint32(nil, uint32(kept.pattern)), kept.Type
	for i, step := range kept.Path {
		if step.What == NeedPointee {
			continue
		}
		t := kept.BTF.Type(step.Type)
		o := canonical.Read(&t, anything)
		o.Fields = o.Fields[step.Idx:][:1]
		if b = appendKept(b, o); step.What == NeedEnumerator {
			return w.number(b)
		}
		if leaf = t.Member(step.Idx).Type; i < len(kept.Path)-1 {
			b = between(b, kept.BTF.Type(leaf))
		}
	}
	return w.number(binary.LittleEndian.AppendUint32(b, w.of(keptType{kept.BTF, leaf, false}, 0)))
}

// between appends the types between a member and the struct or union behind it.
func between(b []byte, t btf.Type) []byte {
	for range limits.KeptDepth {
		if t.Kind().IsComposite() {
			break
		}
		b = appendKept(b, canonical.Read(&t, anything))
		if t.Kind() == btf.KindArray {
			t = t.BTF().Type(t.Array().Elem)
		} else {
			t = t.BTF().Type(t.Ref())
		}
	}
	return b
}

func anything(btf.TypeID) int { return 0 }

// appendKept appends the content of a type. The flag of structs and unions says only that some members are bitfields.
func appendKept(b []byte, o canonical.Type) []byte {
	if o.Kind.IsComposite() {
		o.Flag = o.Flag && slices.ContainsFunc(o.Fields, func(f canonical.Field) bool { return f.Lo>>24 > 0 })
	}
	return o.AppendContent(b)
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
	declared := behind && t.NameOff != 0 // the name is enough
	if declared && k.IsComposite() {
		return appendKept(nil, canonical.Type{Kind: btf.KindFwd, Flag: k == btf.KindUnion, Name: string(t.Name())})
	}
	behind = k == btf.KindPtr || behind && !k.IsComposite()
	o := canonical.Read(t, func(id btf.TypeID) int { return int(w.of(keptType{t.BTF(), id, behind}, depth)) })
	if declared && k.IsAnyEnum() {
		o.Fields = nil
	}
	for i := len(o.Fields) - 1; i >= 0 && w.padded && k.IsComposite(); i-- {
		if isPadding(t, t.Member(uint32(i))) {
			o.Fields, o.Refs = slices.Delete(o.Fields, i, i+1), slices.Delete(o.Refs, i, i+1)
		}
	}
	b := appendKept(nil, o)
	for _, r := range o.Refs {
		b = binary.LittleEndian.AppendUint32(b, uint32(r))
	}
	return b
}

// isPadding reports whether m is what explicit padding puts into a gap.
func isPadding(t *btf.Type, m btf.Member) bool {
	in := t.BTF().Type(m.Type)
	return in.Kind() == btf.KindArray && t.BTF().NameIs(m.NameOff, "__pad"+strconv.FormatUint(uint64(m.BitOffset/8), 10))
}
