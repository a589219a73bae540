// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/limits"
)

// questions numbers groups of all objects. Groups have the same number if what cilium/ebpf reads of them is equal: the byte order,
// kind and path of each relocation in their order, and the local type. So cilium/ebpf decides the same on them.
type questions map[[sha256.Size]byte]int

// number sets the number of each group of an object, given the number of the object.
func (q questions) number(number int, o *core.Object, c *ciliumObject) {
	l := sums{number: number, btf: o.BTF(), left: limits.SignatureBytes, made: make(map[contents][sha256.Size]byte)}
	var b []byte
	for i := range c.groups {
		g := &c.groups[i]
		local := contents{id: o.Root(&o.Records()[g.records[0]]).ID}
		for _, r := range g.records {
			k := o.Records()[r].Kind
			local.pointees = local.pointees || !k.IsField() && !k.IsEnumval()
		}
		sum := l.of(local)
		b = append(b[:0], o.Order().String()...)
		b = append(b, sum[:]...)
		for _, r := range g.relos {
			text := r.String()
			b = appendText(b, text[:strings.LastIndex(text, "local_id=")])
		}
		key := sha256.Sum256(b)
		n, ok := q[key]
		if !ok {
			n = len(q)
			q[key] = n
		}
		g.question = n
	}
}

func appendText[T string | []byte](b []byte, text T) []byte {
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(text))), text...)
}

// contents is a type with all types that it leads to. cilium/ebpf looks behind pointers only for relocations of types.
type contents struct {
	id       btf.TypeID
	pointees bool
}

// sums makes hashes of the contents of types of one BTF.
type sums struct {
	number int // number of the object
	btf    *btf.BTF
	left   int // how many bytes may still be hashed
	made   map[contents][sha256.Size]byte

	b       []byte
	seen    map[btf.TypeID]int // types in b, by their order
	stopped bool               // b lacks something
}

// of returns a hash of contents, or one of the numbers of object and type if there is too much to hash.
func (l *sums) of(t contents) [sha256.Size]byte {
	if s, ok := l.made[t]; ok {
		return s
	}
	l.b, l.seen, l.stopped = l.b[:0], make(map[btf.TypeID]int), false
	l.add(t.id, t.pointees)
	l.left -= len(l.b)
	if l.stopped {
		l.b = fmt.Appendf(l.b[:0], "object %d, type %d", l.number, t.id)
	}
	l.made[t] = sha256.Sum256(l.b)
	return l.made[t]
}

// add appends the record of a type, with names and types in place of their numbers. It stops when too much has been hashed.
func (l *sums) add(id btf.TypeID, pointees bool) {
	n, ok := l.seen[id]
	if !ok {
		n = len(l.seen)
		l.seen[id] = n
	}
	l.b = binary.LittleEndian.AppendUint32(l.b, uint32(n))
	if l.stopped = l.stopped || len(l.b) > l.left; ok || l.stopped {
		return
	}
	t := l.btf.Type(id)
	word := func(w btf.Word, v uint32) {
		switch {
		case l.stopped:
		case w == btf.Name:
			name := l.btf.Name(v)
			l.b = appendText(l.b, name)
			l.stopped = len(name) > limits.NameBytes || len(l.b) > l.left
		case w != btf.Ref:
			l.b = binary.LittleEndian.AppendUint32(l.b, v)
		case pointees || t.Kind() != btf.KindPtr:
			l.add(btf.TypeID(v), pointees)
		}
	}
	l.b = strconv.AppendBool(append(l.b, byte(t.Kind())), t.KindFlag())
	l.b = binary.LittleEndian.AppendUint32(l.b, t.Vlen())
	word(btf.Name, t.NameOff)
	word(t.Kind().Shape().Third, t.Size())
	for w, v := range t.Words() {
		word(w, v)
	}
}
