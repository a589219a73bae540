// SPDX-License-Identifier: Apache-2.0

package core

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"slices"
	"strconv"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/pkg/relo"
)

// Hash returns a hash of the distinct relocations of some objects and of the byte
// order of their objects. It does not depend on names of objects, code, type IDs,
// or how often a relocation occurs: objects with equal hashes have equal minimized
// BTF. It leaves out relocations that no loader accepts or that do not depend on
// the kernel.
func Hash(objects ...*Object) [sha256.Size]byte {
	seen := make(map[string]bool)
	var all []string
	var b []byte
	for _, o := range objects {
		sg := signatures{object: o}
		for _, s := range o.specs {
			if !s.dependsOnKernel() {
				continue
			}
			b = append(b[:0], byte(s.kind), 0)
			if o.order == binary.BigEndian {
				b[1] = 1
			}
			b = sg.of(s, b)
			if c := string(b); !seen[c] {
				seen[c] = true
				all = append(all, c)
			}
		}
	}
	slices.Sort(all)
	h := sha256.New()
	var n [8]byte
	for _, c := range all {
		binary.LittleEndian.PutUint64(n[:], uint64(len(c)))
		h.Write(n[:])
		h.Write([]byte(c))
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// signatures makes those of the specs of one object.
type signatures struct {
	object *Object
	spent  int // bytes
	w      signer
}

// of appends the signature of a spec. If the signatures of the object take more
// than limits.SignatureBytes, it is the object and the spec itself.
func (sg *signatures) of(s *spec, b []byte) []byte {
	from := len(b)
	if sg.spent <= limits.SignatureBytes {
		sg.w.btf, sg.w.end = s.btf, from+limits.SignatureBytes-sg.spent
		clear(sg.w.seen)
		b = s.signature(&sg.w, b)
		if sg.spent += len(b) - from; len(b) <= sg.w.end {
			return b
		}
	}
	sg.spent = limits.SignatureBytes + 1
	sum := sha256.Sum256(sg.object.raw)
	b = append(append(b[:from], '?'), sum[:]...)
	b = binary.LittleEndian.AppendUint32(b, uint32(s.root))
	return append(append(b, byte(sortOf(s.kind))), s.access...)
}

// signature appends everything in s that the target side of a match depends on:
// specs with equal signatures have equal outcomes on every candidate. It stops soon
// after w.end bytes.
func (s *spec) signature(w *signer, b []byte) []byte {
	b = append(b, byte(s.rootKind()), ' ')
	b = append(append(b, s.name()...), ' ')
	switch {
	case s.kind == relo.TypeMatches:
		return w.deep(b, s.root, relMatches)
	case s.kind.IsType():
		return w.deep(b, s.root, relExists)
	case s.kind.IsEnumval():
		return append(append(b, 'e'), btf.Agreed(s.acc[0].name)...)
	}
	b = w.field(append(b, 'r'), s.root)
	for _, a := range s.acc {
		if a.name == "" {
			b = strconv.AppendUint(append(b, '['), uint64(a.idx), 10)
			b = w.field(append(b, ' '), a.typeID)
			continue
		}
		t := s.btf.Type(a.typeID)
		b = append(append(append(b, '.'), a.name...), ' ')
		mem := ciliumMember(&t, a.idx)
		if mem.BitSize > 0 {
			b = append(b, 'b')
		}
		b = w.field(b, mem.Type)
		// Integers whose size is no power of two have no alignment for cilium/ebpf.
		if e := element(s.btf, mem.Type); (e.Kind() == btf.KindInt || e.Kind().IsAnyEnum()) && bits.OnesCount32(e.Size()) != 1 {
			b = append(b, 'u')
		}
	}
	// cilium/ebpf refuses an anonymous member that is no struct or union.
	if last := s.raw[len(s.raw)-1]; last.member {
		mem := s.btf.Type(last.typeID).Member(last.idx)
		if in, _ := s.btf.SkipMods(mem.Type); s.btf.NameIs(mem.NameOff, "") && !in.Kind().IsComposite() {
			b = append(b, 'n')
		}
	}
	return b
}

// signer walks one local type and writes down what the walks over pairs of types
// (comparer, ciliumComparer) depend on, relation by relation.
type signer struct {
	btf   *btf.BTF
	end   int // length at which to give up
	seen  map[btf.TypeID]int
	depth int
}

// field is for relField, which follows only arrays.
func (w *signer) field(b []byte, id btf.TypeID) []byte {
	for range maxLevel {
		t, ok := w.btf.SkipMods(id)
		if !ok {
			break
		}
		switch k := t.Kind(); {
		case k.IsComposite():
			return append(b, 's')
		case k == btf.KindArray:
			b = append(b, 'a')
			id = t.Array().Elem
			continue
		case k.IsAnyEnum(), k == btf.KindFwd:
			if b = append(b, 'w'); k.IsAnyEnum() {
				b[len(b)-1] = 'e'
			}
			return append(b, btf.Agreed(t.Name())...)
		case k == btf.KindInt:
			return append(b, 'i', byte(t.IntOffset()))
		default:
			return append(b, 'k', byte(k))
		}
	}
	return append(b, '!')
}

// deep is for relExists and relMatches, which follow references. relMatches also
// follows members, and pointers as cilium/ebpf does. A type that occurs again is
// written as its number.
func (w *signer) deep(b []byte, id btf.TypeID, rel relation) []byte {
	t, ok := w.btf.SkipMods(id)
	if !ok || w.depth == limits.Pairs || len(b) > w.end { // no loader goes on, or the result is not used
		return append(b, '!')
	}
	w.depth++
	defer func() { w.depth-- }()
	if n, ok := w.seen[t.ID]; ok {
		return append(strconv.AppendInt(append(b, '#'), int64(n), 10), ' ')
	}
	if w.seen == nil {
		w.seen = make(map[btf.TypeID]int)
	}
	w.seen[t.ID] = len(w.seen)
	b = append(b, '(', byte(t.Kind()))
	name := func(off uint32) {
		if len(b) > w.end {
			return
		}
		b = append(append(b, btf.Agreed(w.btf.Name(off))...), 0)
	}
	if rel == relMatches {
		name(t.NameOff)
	}
	switch k := t.Kind(); {
	case k == btf.KindInt:
		b = binary.LittleEndian.AppendUint32(b, t.IntData())
		b = binary.LittleEndian.AppendUint32(b, t.Size())
	case k == btf.KindFwd:
		b = strconv.AppendBool(b, t.KindFlag())
	case k == btf.KindPtr:
		b = w.deep(b, t.Ref(), rel)
	case k == btf.KindArray:
		a := t.Array()
		b = binary.LittleEndian.AppendUint32(b, a.Nelems)
		b = w.deep(b, a.Elem, rel)
		b = w.deep(b, a.Index, rel)
	case k == btf.KindFuncProto:
		for i := range t.Vlen() {
			b = w.deep(b, t.Param(i).Type, rel)
		}
		b = w.deep(b, t.Ref(), rel)
	case k.IsComposite() && rel == relMatches:
		for i := range t.Vlen() {
			m := t.Member(i)
			// The name keeps its flavor, because cilium/ebpf compares it.
			b = append(append(b, w.btf.Name(m.NameOff)...), 0)
			b = w.deep(b, m.Type, rel)
		}
	case k.IsAnyEnum() && rel == relMatches:
		// The size that C gives it is the default.
		if size := t.Size(); k == btf.KindEnum && size != 4 || k == btf.KindEnum64 && size != 8 {
			b = binary.LittleEndian.AppendUint32(append(b, '='), size)
		}
		for i := range t.Vlen() {
			name(t.Enumerator(i).NameOff)
		}
	}
	return append(b, ')')
}

// Reach notes how far from their candidates the relocations of o look, by the names
// of candidates without flavors; the farthest counts. It returns false if decisions
// depend on more than these types in their order.
//
//   - Fields and enumerators are found and compared by value: relField ends at
//     pointers.
//   - relExists follows pointers, elements and prototypes, and ends at structs and
//     unions.
//   - relMatches follows everything.
//   - The value of a target_type_id is a type ID. It counts only whether two
//     candidates have the same, and for loads and stores whether it fits.
//
// The minimizer's first attempt stays within that: it follows the pointers of
// matches and gives structs of one name the same members.
func (o *Object) Reach(names map[string]btf.Reach) bool {
	for i := range o.records {
		r := &o.records[i]
		s := o.specs[r.spec]
		if class := r.insn.code & 7; s.kind == relo.TargetTypeID && r.insn.ok && (class == classLDX || class == classST || class == classSTX) {
			return false
		}
	}
	for _, s := range o.specs {
		if !s.dependsOnKernel() {
			continue
		}
		r := btf.ReachValue
		switch {
		case s.kind == relo.TypeMatches:
			r = btf.ReachAll
		case s.kind.IsType():
			r = btf.ReachPointees
		}
		names[s.name()] = max(names[s.name()], r)
	}
	return true
}

// sortOf returns a byte for each way of searching a target: kinds that share it
// search in the same way.
func sortOf(k relo.Kind) byte {
	switch {
	case k == relo.TypeMatches:
		return 'm'
	case k.IsType():
		return 't'
	case k.IsEnumval():
		return 'e'
	}
	return 'f'
}
