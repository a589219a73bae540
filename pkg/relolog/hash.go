package relolog

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/btfgen/btfgen/internal/rawbtf"
)

// Hash returns a hash of the distinct relocations of some objects, of either
// byte order. It depends on what the relocations ask, and on the byte order of
// those who ask, but not on names of objects, on code, or on how often something
// is asked: a change of an object that keeps the hash keeps its minimized BTF.
// Type IDs do not go into it either. Relocations that no loader accepts do not
// count, nor do those that ask nothing of the kernel.
func Hash(objects ...*Object) [sha256.Size]byte {
	seen := make(map[string]bool)
	var all []string
	for _, o := range objects {
		for _, s := range o.specs {
			name := s.name()
			if s.err != nil || name == "" || s.kind == KindLocalTypeID {
				continue
			}
			if c := string(s.content(name, o.order)); !seen[c] {
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

// content is the signature of a spec that means the same in every object.
func (s *spec) content(name string, order binary.ByteOrder) []byte {
	b := []byte{byte(s.kind), 0}
	if order == binary.BigEndian {
		b[1] = 1
	}
	if !s.kind.IsType() {
		return s.signature(b, name, 0)
	}
	b = append(append(append(b, byte(s.rootKind()), ' '), name...), ' ')
	c := contenter{spec: s, deep: s.kind == KindTypeMatches, seen: make(map[rawbtf.TypeID]int)}
	return c.append(b, s.root)
}

// contenter writes types out as far as a comparison of whole types looks at
// them: into members only if deep, as type_matches does (behind pointers as
// well, where cilium/ebpf goes).
type contenter struct {
	*spec
	deep bool
	seen map[rawbtf.TypeID]int

	depth int
}

// append appends a type. One that was there stands as its number.
func (c *contenter) append(b []byte, id rawbtf.TypeID) []byte {
	t, ok := c.btf.SkipMods(id)
	if !ok || c.depth == maxPairs { // no loader would go on
		return append(b, '!')
	}
	c.depth++
	defer func() { c.depth-- }()
	if n, ok := c.seen[t.ID]; ok {
		return append(strconv.AppendInt(append(b, '#'), int64(n), 10), ' ')
	}
	c.seen[t.ID] = len(c.seen)
	b = append(b, '(', byte(t.Kind()))
	name := func(off uint32) {
		b = append(append(b, rawbtf.Essential(c.btf.Name(off))...), 0)
	}
	if c.deep {
		name(t.NameOff)
	}
	switch k := t.Kind(); {
	case k == rawbtf.KindInt:
		b = binary.LittleEndian.AppendUint32(b, t.IntData())
		b = binary.LittleEndian.AppendUint32(b, t.Size())
	case k == rawbtf.KindFwd:
		b = strconv.AppendBool(b, t.KindFlag())
	case k == rawbtf.KindPtr:
		b = c.append(b, t.Ref())
	case k == rawbtf.KindArray:
		a := t.Array()
		b = binary.LittleEndian.AppendUint32(b, a.Nelems)
		b = c.append(b, a.Elem)
		b = c.append(b, a.Index)
	case k == rawbtf.KindFuncProto:
		for i := range t.Vlen() {
			b = c.append(b, t.Param(i).Type)
		}
		b = c.append(b, t.Ref())
	case k.IsComposite() && c.deep:
		for i := range t.Vlen() {
			m := t.Member(i)
			name(m.NameOff)
			b = c.append(b, m.Type)
		}
	case k.IsAnyEnum() && c.deep:
		for i := range t.Vlen() {
			name(t.Enumerator(i).NameOff)
		}
	}
	return append(b, ')')
}
