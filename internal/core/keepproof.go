// SPDX-License-Identifier: Apache-2.0

package core

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/btf/canonical"
	"github.com/btfgen/btfgen/internal/limits"
)

// The proof of kept types: a pattern finds types of the same content in the
// minimized BTF as in the kernel. Contents are encoded as bytes, by value and with
// all names, down to integers. Behind a pointer the name of a struct, union or
// enum is enough.

// Compare returns the first type that the patterns name in the full BTF and that
// the minimized one does not have unchanged, or nil. The error is a
// [limits.Exceeded] or that of the context.
func (kp *KeepPatterns) Compare(ctx context.Context, full, small *Target) (*Difference, error) {
	if kp == nil || len(kp.patterns) == 0 {
		return nil, nil
	}
	w := keptWriter{known: make(map[keptType]keptSum), meter: limits.NewMeter(ctx, limits.Comparisons, "comparisons of kept types")}
	have := make(map[keptSum]bool)
	_, err := kp.Find(ctx, small, func(kept *Kept) { have[w.kept(kept)] = true })
	if err := cmp.Or(err, w.stopped()); err != nil {
		return nil, err
	}
	var d *Difference
	_, err = kp.Find(ctx, full, func(kept *Kept) {
		if d != nil || w.stopped() != nil || have[w.kept(kept)] {
			return
		}
		t := kept.BTF.Type(kept.Type)
		d = &Difference{
			Relocation: "--keep " + kp.patterns[kept.pattern].text, Candidate: typeName(t),
			Full: fmt.Sprintf("type %d", t.ID), Minimized: "none like it",
		}
	})
	if err := cmp.Or(err, w.stopped()); err != nil {
		return nil, err
	}
	return d, nil
}

// keptSum is the hash of a content.
type keptSum = [sha256.Size]byte

// keptWriter hashes the contents of types.
type keptWriter struct {
	known map[keptType]keptSum
	meter *limits.Meter
	deep  error // types are too deep inside each other
}

// keptType is a type, and whether a pointer leads to it.
type keptType struct {
	btf    *btf.BTF
	id     btf.TypeID
	behind bool
}

// stopped returns the error that ends the comparison, after which its results mean nothing.
func (w *keptWriter) stopped() error { return cmp.Or(w.deep, w.meter.Err()) }

// kept returns the hash of a type, or of the member or enumerator of a path, for a pattern.
func (w *keptWriter) kept(kept *Kept) keptSum {
	b, leaf := []byte(fmt.Sprintln(kept.pattern)), kept.Type
	for _, step := range kept.Path {
		t := kept.BTF.Type(step.Type)
		o := canonical.Read(&t, func(btf.TypeID) int { return 0 })
		o.Fields = o.Fields[step.Idx:][:1]
		if b = appendKept(b, o); step.What == NeedEnumerator {
			return sha256.Sum256(b)
		}
		leaf = t.Member(step.Idx).Type
	}
	sum := w.of(keptType{kept.BTF, leaf, false}, 0)
	return sha256.Sum256(append(b, sum[:]...))
}

// appendKept appends the content of a type. The flag of structs and unions says only that some members are bitfields.
func appendKept(b []byte, o canonical.Type) []byte {
	if o.Kind.IsComposite() {
		o.Flag = o.Flag && slices.ContainsFunc(o.Fields, func(f canonical.Field) bool { return f.Lo>>24 > 0 })
	}
	return o.AppendContent(b)
}

// of returns the hash of a type's content. depth is how many types it is inside of.
func (w *keptWriter) of(kt keptType, depth int) (sum keptSum) {
	if n, ok := w.known[kt]; ok {
		return n
	}
	if depth > limits.KeptDepth {
		w.deep = &limits.Exceeded{Max: limits.KeptDepth, What: "kept types inside each other"}
	}
	t := kt.btf.Type(kt.id)
	if w.deep != nil || !w.meter.Step(1+int(t.Vlen())) {
		return sum
	}
	sum = sha256.Sum256(w.content(&t, kt.behind, depth+1))
	w.known[kt] = sum
	return sum
}

func (w *keptWriter) content(t *btf.Type, behind bool, depth int) []byte {
	k := t.Kind()
	declared := behind && t.NameOff != 0 // the name is enough
	if declared && k.IsComposite() {
		return appendKept(nil, canonical.Type{Kind: btf.KindFwd, Flag: k == btf.KindUnion, Name: string(t.Name())})
	}
	behind = k == btf.KindPtr || behind && !k.IsComposite()
	var refs []btf.TypeID
	o := canonical.Read(t, func(id btf.TypeID) int { refs = append(refs, id); return 0 })
	if declared && k.IsAnyEnum() {
		o.Fields = nil
	}
	b := appendKept(nil, o)
	for _, id := range refs {
		sum := w.of(keptType{t.BTF(), id, behind}, depth)
		b = append(b, sum[:]...)
	}
	return b
}
