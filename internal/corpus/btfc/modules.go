// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// The modules of a kernel are encoded together, as if the types of one after the other were a kernel's. Their base is their kernel.
// The rest of that state has the names of the modules, their numbers of types, the orders of their strings, and their rests.

// Module is a module's BTF.
type Module struct {
	Name string
	BTF  []byte
}

// sumModules returns the SHA-256 of the names and sizes of modules and of their BTF, and how many bytes these are.
func sumModules(modules []Module) (sum [SumSize]byte, size int64, err error) {
	var b []byte
	last := ""
	for _, m := range modules {
		if err := kernel.CheckName(m.Name); err != nil {
			return sum, 0, fmt.Errorf("module: %w", err)
		}
		if m.Name <= last {
			return sum, 0, fmt.Errorf("module %q: out of order", m.Name)
		}
		last = m.Name
		b = append(append(b, m.Name...), 0)
		b = binary.AppendUvarint(b, uint64(len(m.BTF)))
	}
	h := sha256.New()
	h.Write(b)
	size = int64(len(b))
	for _, m := range modules {
		h.Write(m.BTF)
		size += int64(len(m.BTF))
	}
	h.Sum(sum[:0])
	return sum, size, nil
}

// encodeModules returns the parts of the payload of modules. The rest has all of a module that does not have the usual form.
func encodeModules(parent, base *state, k *known, modules []Module) ([][]byte, error) {
	p := newParsed()
	if err := p.setBase(base); err != nil {
		return nil, err
	}
	for _, m := range modules {
		first, names := len(p.types), len(p.fresh)
		table := append(append(p.rest, m.Name...), 0)
		rest, list, err := p.take(k, m.BTF)
		if err != nil {
			p.types, rest = p.types[:first], m.BTF
			for _, name := range p.fresh[names:] {
				delete(p.own, string(name))
			}
			p.fresh = p.fresh[:names]
			table = append(table, 0)
		} else {
			table = binary.AppendUvarint(table, uint64(len(p.types)-first+1))
			table = p.appendStrings(binary.AppendUvarint(table, uint64(len(list))), p.types[first:], list)
		}
		p.rest = append(binary.AppendUvarint(table, uint64(len(rest))), rest...)
	}
	s, err := write(parent, p, match(parent, k, p))
	return s.parts(), err
}

// appendStrings appends the order of the strings of a module with these types.
func (p *parsed) appendStrings(b []byte, types [][]uint32, list []uint32) []byte {
	uses := p.uses(types)
	taken := make(map[uint32]bool, len(list))
	derived := make([]bool, len(list))
	for i, n := range list {
		for len(uses) > 0 && taken[uses[0]] {
			uses = uses[1:]
		}
		derived[i] = len(uses) > 0 && uses[0] == n
		taken[n] = true
	}
	for i := 0; i < len(list); {
		n := 1
		for i+n < len(list) && derived[i+n] == derived[i] && (derived[i] || list[i+n] == list[i]+uint32(n)) {
			n++
		}
		if derived[i] {
			b = binary.AppendUvarint(b, uint64(n-1)<<1)
		} else {
			b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(n-1)<<1|1), uint64(list[i]))
		}
		i += n
	}
	return b
}

// Modules returns the BTF of the modules of kernel i, in order of their names. It returns an error if they do not have the SHA-256 in the
// index.
func (f *File) Modules(ctx context.Context, i int) ([]Module, error) {
	e := &f.entries[i]
	if !e.has(partModules) {
		return nil, nil
	}
	st, err := f.states.get(ctx, chunkID{partModules, i})
	if err != nil {
		return nil, err
	}
	all, err := st.modules(ctx, e.Modules)
	if err == nil {
		var sum [SumSize]byte
		if sum, _, err = sumModules(all); err == nil && sum != e.ModulesSum {
			err = errSum
		}
	}
	if err != nil {
		return nil, e.wrap(ctx, partModules, err)
	}
	return all, nil
}

// modules returns the n modules of a state.
func (st *state) modules(ctx context.Context, n int) (out []Module, err error) {
	b, err := newModuleBuilder(st)
	if err != nil {
		return nil, err
	}
	c := btfa.NewCursor(st.rest)
	types, uses := st.types, newUses(st, nil)
	room := limits.PartSize
	for i := range n {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		name := string(c.Text())
		if err := kernel.CheckName(name); err != nil {
			return nil, cmp.Or(c.Err, fmt.Errorf("module %d: %w", i, err))
		}
		var own, list []uint32
		count := c.Count(len(types)+1, "types")
		if count > 0 {
			own, types = types[:count-1], types[count-1:]
			list = uses.list(&c, own)
		}
		blob := c.Bytes(c.Count(min(room, c.Len()), "bytes"))
		switch {
		case c.Err != nil:
		case count == 0:
			blob = bytes.Clone(blob)
		default:
			blob, err = b.module(st, own, list, blob, int64(room))
		}
		if err = cmp.Or(c.Err, err); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		room -= len(blob)
		out = append(out, Module{name, blob})
	}
	if c.End(); c.Err == nil && len(types) > 0 {
		c.Fail(errWrong)
	}
	return out, c.Err
}

// list reads the order of the strings of a module with these types.
func (u *uses) list(c *btfa.Cursor, types []uint32) (out []uint32) {
	limit := u.st.numNames
	n := c.Count(limit, "strings")
	u.types, u.names, u.taken[0] = types, nil, true
	for len(out) < n && c.Err == nil {
		v := c.Uvarint()
		if v>>1 >= uint64(n-len(out)) {
			c.Fail(errRun)
			break
		}
		at, run := len(out), int(v>>1)+1
		if v&1 == 0 {
			if out = u.take(out, run); len(out) < at+run {
				c.Fail(errWrong)
			}
			continue
		}
		first := c.Count(limit-run, "names")
		for i := range run {
			out = append(out, uint32(first+i))
		}
		u.pass(out[at:])
	}
	for _, n := range out {
		u.taken[n] = false
	}
	return out
}

// newModuleBuilder returns a builder of the modules in a state, in which the types and strings of their kernel are placed.
func newModuleBuilder(st *state) (*builder, error) {
	base := &builder{names: make([]uint32, st.base.numNames)}
	list, err := st.base.list()
	if err != nil {
		return nil, err
	}
	for _, n := range list {
		base.names[n] = uint32(len(base.text))
		base.text = append(base.text, st.base.name(n)...)
	}
	if err := base.place(st.base); err != nil {
		return nil, err
	}
	b := &builder{base: base, names: make([]uint32, st.numNames)}
	if err := b.place(st); err != nil {
		return nil, err
	}
	clear(b.ids)
	return b, nil
}

// module returns the BTF of a module with these types and strings, of at most room bytes.
func (b *builder) module(st *state, types, list []uint32, rest []byte, room int64) ([]byte, error) {
	size := int64(len(rest) + st.bytes(types))
	for _, n := range list {
		size += int64(len(st.name(n)))
	}
	if size > room {
		return nil, &limits.Exceeded{Max: limits.PartSize, What: "bytes of modules"}
	}
	s, err := readSections(rest, size)
	if err != nil {
		return nil, err
	}
	out := make([]byte, size)
	if err := s.fill(out, rest); err != nil {
		return nil, err
	}
	strs := section(out, s.Strings)
	if len(section(out, s.Types)) != st.bytes(types) {
		return nil, errWrong
	}
	for i, c := range types {
		b.ids[st.entity(c)] = uint32(st.numBase() + i + 1)
	}
	at := 0
	for _, n := range list {
		if n != 0 {
			b.names[n] = uint32(len(b.base.text) + at)
		}
		at += copy(strs[at:], st.name(n))
	}
	err = b.write(st, types, s.Order, section(out, s.Types))
	for _, c := range types {
		b.ids[st.entity(c)] = 0
	}
	for _, n := range list {
		b.names[n] = 0
	}
	return out, err
}
