// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"bytes"
	"errors"

	"github.com/btfgen/btfgen/internal/btf"
)

// errModel says that BTF does not have the usual form, so that it is stored as bytes.
var errModel = errors.New("does not have the usual form")

// parsed is BTF to be encoded: a kernel's, or that of all modules of a kernel.
type parsed struct {
	rest    []byte
	types   [][]uint32 // records from 1. Names have numbers; references are indices here, or entities of the base
	strings []uint32   // names
	fresh   [][]byte   // the text of names that the parent does not have
	own     map[string]uint32

	base      *state   // of modules
	baseNames []uint32 // names by their offsets
	baseIDs   []uint32 // type IDs by entity
}

// parse parses the BTF of a kernel. It returns errModel if the BTF does not have the usual form.
func parse(k *known, blob []byte) (p *parsed, err error) {
	p = newParsed()
	if p.rest, p.strings, err = p.take(k, blob); err == nil && (len(p.strings) == 0 || p.strings[0] != 0) {
		err = errModel
	}
	return p, err
}

func newParsed() *parsed { return &parsed{types: [][]uint32{nil}, own: make(map[string]uint32)} }

// number returns the number of a name, which may be new.
func (p *parsed) number(k *known, text []byte) uint32 {
	if n, ok := k.names[string(text)]; ok {
		return n
	}
	n, ok := p.own[string(text)]
	if !ok {
		n = uint32(k.numNames + len(p.fresh))
		p.own[string(text)] = n
		p.fresh = append(p.fresh, text)
	}
	return n
}

// setBase sets the base of the BTF that take parses.
func (p *parsed) setBase(base *state) error {
	list, err := base.list()
	if err != nil {
		return err
	}
	p.base = base
	for i, n := range list {
		at := len(p.baseNames)
		p.baseNames = append(p.baseNames, make([]uint32, len(base.name(n)))...)
		if i > 0 {
			p.baseNames[at] = n | inBase
		}
	}
	p.baseIDs = make([]uint32, base.numEnts+1)
	for i, c := range base.types {
		p.baseIDs[base.entity(c)] = uint32(i) + 1
	}
	return nil
}

// take adds the types of BTF. It returns the rest, and the names in the order of the strings.
func (p *parsed) take(k *known, blob []byte) (rest []byte, list []uint32, err error) {
	s, err := readSections(blob, int64(len(blob)))
	if err != nil {
		return nil, nil, errModel
	}
	strs := section(blob, s.Strings)
	if len(strs) > 0 && strs[len(strs)-1] != 0 {
		return nil, nil, errModel
	}
	names := make([]uint32, len(strs)) // by offset, from 1
	seen := make(map[uint32]bool)
	for off := 0; off < len(strs); {
		t := strs[off:]
		t = t[:bytes.IndexByte(t, 0)]
		n := p.number(k, t)
		if seen[n] {
			return nil, nil, errModel
		}
		seen[n] = true
		names[off] = n + 1
		list = append(list, n)
		off += len(t) + 1
	}
	return s.rest(blob), list, p.parseTypes(section(blob, s.Types), s, names)
}

func (p *parsed) parseTypes(b []byte, s sections, names []uint32) error {
	all := make([]uint32, len(b)/4)
	for i := range all {
		all[i] = s.Order.Uint32(b[4*i:])
	}
	first := len(p.types)
	for len(all) > 0 {
		if len(all) < 3 {
			return errModel
		}
		k := kindOf(all)
		if k == btf.KindVoid || int(k) >= btf.NumKinds {
			return errModel
		}
		l := &layouts[k]
		count := uint64(all[1] & 0xffffff)
		n := uint64(l.first) + uint64(l.words)*count
		if n > uint64(len(all)) || !l.counted && count > 0 || !l.named && all[0] != 0 || l.third == btf.Data && all[2] != 0 {
			return errModel
		}
		p.types = append(p.types, all[:n:n])
		all = all[n:]
	}
	base, numBase := len(p.baseNames), 0
	if p.base != nil {
		numBase = len(p.base.types)
	}
	ok := true
	for _, t := range p.types[first:] {
		eachName(t, func(i int) {
			at := int(t[i])
			switch {
			case at < base && (at == 0 || p.baseNames[at] != 0):
				t[i] = p.baseNames[at]
			case at >= base && at-base < len(names) && names[at-base] != 0:
				t[i] = names[at-base] - 1
			default:
				ok = false
			}
		})
		eachRef(t, func(i int) {
			switch id := int(t[i]); {
			case id == 0:
			case id <= numBase:
				t[i] = p.base.entity(p.base.types[id-1]) | inBase
			case id-numBase+first-1 < len(p.types):
				t[i] = uint32(id - numBase + first - 1)
			default:
				ok = false
			}
		})
	}
	if !ok {
		return errModel
	}
	return nil
}

// uses returns the names of types in the order in which they use them first, except for the empty name and those of the base.
func (p *parsed) uses(types [][]uint32) (names []uint32) {
	seen := map[uint32]bool{0: true}
	for _, t := range types {
		eachName(t, func(i int) {
			if n := t[i]; n < inBase && !seen[n] {
				seen[n] = true
				names = append(names, n)
			}
		})
	}
	return names
}
