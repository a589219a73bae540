// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/internal/limits"
)

// The modules of a kernel are told together, as one more kernel that has all of its types and, behind these, those of one module after
// the other. Types and names of the kernel, which split BTF refers to by number, are thus what they are for other types of
// the kernel, and what modules have in common is guessed from the modules before. Each module's strings are told as the order in which
// its types use names first.

// table says of each module how it is told.
type table struct {
	name    string
	types   int // of its own, or -1 if it is kept as bytes
	strings int // of its own
	bytes   int // of what is neither types nor strings, or of all
}

// joinModules is what the sum of modules is of: their names and sizes, and their BTF.
func joinModules(modules []Module) ([]byte, error) {
	var b []byte
	last := ""
	for _, m := range modules {
		if m.Name <= last || bytes.IndexByte([]byte(m.Name), 0) >= 0 {
			return nil, fmt.Errorf("module %q: a bad name, or out of order", m.Name)
		}
		last = m.Name
		b = append(append(b, m.Name...), 0)
		b = binary.AppendUvarint(b, uint64(len(m.BTF)))
	}
	for _, m := range modules {
		b = append(b, m.BTF...)
	}
	return b, nil
}

// modules returns what the chunk of modules holds. st is the state of their kernel, nil if that is kept as bytes.
func (w *Writer) modules(ctx context.Context, k *Kernel, st *state) ([][]byte, error) {
	if st != nil {
		if parts, err := encodeModules(ctx, st, w.knownOfParent(k.plan.number, st), k); err == nil {
			all, err := readModules(ctx, func() (*state, error) { return st, nil }, slices.Concat(parts...), k.entry.Modules, func(string) bool { return true })
			if err == nil && slices.EqualFunc(all, k.modules, func(a, b Module) bool { return bytes.Equal(a.BTF, b.BTF) }) {
				return parts, nil
			}
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	var head, rest []byte
	for _, mod := range k.modules {
		head = appendTable(head, table{mod.Name, -1, 0, len(mod.BTF)})
		rest = append(rest, mod.BTF...)
	}
	return [][]byte{head, {0, 0}, rest}, nil
}

func appendTable(b []byte, t table) []byte {
	b = append(append(b, t.name...), 0)
	b = binary.AppendUvarint(b, uint64(t.types+1))
	if t.types >= 0 {
		b = binary.AppendUvarint(b, uint64(t.strings))
	}
	return binary.AppendUvarint(b, uint64(t.bytes))
}

// encodeModules returns the chunk's parts. Modules that the model cannot tell are kept as bytes.
func encodeModules(ctx context.Context, st *state, known *known, k *Kernel) ([][]byte, error) {
	p, err := parse(known, k.btf)
	if err != nil {
		return nil, err
	}
	p.rest, p.strings = nil, nil
	base := len(p.types)
	var head, rest []byte
	all := make([]table, len(k.modules))
	lists := make([][]uint32, len(k.modules))
	for i, mod := range k.modules {
		had := len(p.types)
		own, list, _, err := p.take(known, mod.BTF, base, p.names)
		t := table{mod.Name, len(p.types) - had, len(list), len(own)}
		if err != nil {
			p.types = p.types[:had]
			t, own, list = table{mod.Name, -1, 0, len(mod.BTF)}, mod.BTF, nil
		}
		head, rest = appendTable(head, t), append(rest, own...)
		all[i], lists[i] = t, list
	}
	p.used = make([]bool, len(p.fresh))
	payload := slices.Concat(write(st, p, matchModules(st, p), nil).parts()...)
	joined, err := decode(ctx, st, payload, math.MaxInt32, nil)
	if err != nil {
		return nil, err
	}
	r, err := newModuleReader(st, joined)
	if err != nil {
		return nil, err
	}
	o := &orderWriter{strings: true, place: newPlace(0)}
	for i, t := range all {
		if t.types >= 0 {
			o.write(derivedItems(r.next(t.types).take(nil, math.MaxInt32), lists[i]))
		}
	}
	head = binary.AppendUvarint(binary.AppendUvarint(head, uint64(len(o.runs))), uint64(len(o.far)))
	return [][]byte{head, o.runs, o.far, rest, payload}, nil
}

// matchModules says that a kernel has the first types, and none of the others.
func matchModules(st *state, p *parsed) *matching {
	n := len(p.types)
	m := &matching{entity: make([]uint32, n), fresh: make([]bool, n), items: make([]item, n-1), numEnts: st.numEnts}
	for id := 1; id < n; id++ {
		if id <= len(st.types) {
			m.entity[id], m.items[id-1] = st.entity(st.types[id-1]), item{runCopy, uint32(id) - 1}
			continue
		}
		m.numEnts++
		m.entity[id], m.fresh[id], m.items[id-1] = m.numEnts, true, item{kind: runNew}
	}
	return m
}

// derivedItems tells a list of names by the order in which they are used.
func derivedItems(uses, list []uint32) []item {
	items := make([]item, len(list))
	seen := make(map[uint32]bool)
	for i, n := range list {
		for len(uses) > 0 && seen[uses[0]] {
			uses = uses[1:]
		}
		if items[i] = (item{runOld, n}); len(uses) > 0 && uses[0] == n {
			items[i] = item{kind: runDerived}
		}
		seen[n] = true
	}
	return items
}

// moduleReader reads modules one after the other.
type moduleReader struct {
	st    *state // of the kernel and its modules
	at    int    // how many types have been read
	taken []bool // names of the kernel's own strings

	b     builder // has the places of the kernel's types and strings
	first int     // types of the kernel
	text  uint32  // bytes of its strings
}

var errModules = errors.New("do not go with their kernel")

// newModuleReader returns a reader of the modules of a kernel, which joined has behind the kernel's types.
func newModuleReader(st, joined *state) (*moduleReader, error) {
	n := len(st.types)
	if len(joined.types) < n || !slices.Equal(joined.types[:n], st.types) {
		return nil, errModules
	}
	list, err := st.strings()
	if err != nil {
		return nil, err
	}
	r := &moduleReader{st: joined, at: n, first: n, taken: make([]bool, joined.numNames)}
	r.b.names = make([]uint32, joined.numNames)
	for _, name := range list {
		r.taken[name] = true
		r.b.names[name] = r.text
		r.text += uint32(len(st.name(name)))
	}
	if err := r.b.place(joined); err != nil {
		return nil, err
	}
	for _, c := range joined.types[n:] {
		r.b.ids[joined.entity(c)] = 0
	}
	return r, nil
}

// next returns what names the next n types use.
func (r *moduleReader) next(n int) *uses {
	own := *r.st
	own.types = own.types[r.at : r.at+n]
	r.at += n
	return &uses{st: &own, taken: slices.Clone(r.taken)}
}

// list reads n names of a module's strings.
func (r *moduleReader) list(o *orderReader, u *uses, n int) ([]uint32, error) {
	var out []uint32
	for len(out) < n && o.runs.Err == nil && o.far.Err == nil {
		first := len(out)
		switch kind, run := o.run(n - first); kind {
		case runDerived:
			if out = u.take(out, run); len(out) < first+run {
				return nil, errWrong
			}
		case runOld:
			if run > r.st.numNames {
				return nil, errWrong
			}
			old := o.oldRun(run, r.st.numNames)
			for i := range uint32(run) {
				out = append(out, old+i)
			}
			u.pass(out[first:])
		default:
			return nil, errWrong
		}
		if len(out) > r.st.numNames {
			return nil, errWrong // a name twice
		}
	}
	return out, cmp.Or(o.runs.Err, o.far.Err)
}

// build returns the BTF of a module, of which u are the uses, with these strings.
func (r *moduleReader) build(ctx context.Context, u *uses, list []uint32, rest []byte, room int) ([]byte, error) {
	types := u.st.types
	size, text := uint64(len(rest)+r.st.bytes(types)), r.text
	for _, n := range list {
		size += uint64(len(r.st.name(n)))
	}
	if size > uint64(room) {
		return nil, &limits.Exceeded{Max: limits.PartSize, What: "bytes of modules"}
	}
	s, err := parseSections(rest, size)
	if err != nil {
		return nil, err
	}
	out := make([]byte, size)
	if err := s.fill(out, rest); err != nil {
		return nil, err
	}
	strs := out[s.strings.start:s.strings.end]
	before := make([]uint32, len(list))
	for i, n := range list {
		t := r.st.name(n)
		if len(t) > len(strs) {
			return nil, errWrong
		}
		strs = strs[copy(strs, t):]
		if before[i] = r.b.names[n]; n != 0 {
			r.b.names[n] = text
		}
		text += uint32(len(t))
	}
	if len(strs) > 0 {
		return nil, errWrong
	}
	// Its types come right behind the kernel's, whatever others there are.
	for i, c := range types {
		r.b.ids[r.st.entity(c)] = uint32(r.first + i + 1)
	}
	err = r.b.types(ctx, u.st, s.order, out[s.types.start:s.types.end])
	for _, c := range types {
		r.b.ids[r.st.entity(c)] = 0
	}
	for i, n := range slices.Backward(list) {
		r.b.names[n] = before[i]
	}
	return out, err
}

// readModules reads of the modules of a kernel those that are wanted, of its state, and what their chunk holds. The state is asked for if it is needed.
func readModules(ctx context.Context, base func() (*state, error), payload []byte, n int, wanted func(name string) bool) ([]Module, error) {
	c := btfa.NewCursor(payload)
	all := make([]table, n)
	some, told := false, 0
	for i := range all {
		t := &all[i]
		t.name = string(c.Text())
		if i > 0 && all[i-1].name >= t.name {
			c.Fail(errors.New("names out of order"))
		}
		if t.types = c.Count(limits.PartSize, "types") - 1; t.types >= 0 {
			t.strings = c.Count(limits.PartSize, "strings")
			told++
		}
		t.bytes = c.Count(len(payload), "bytes")
		some = some || wanted(t.name)
	}
	numRuns := c.Count(len(payload), "bytes")
	numFar := c.Count(len(payload), "bytes")
	runs, far := btfa.NewCursor(c.Bytes(numRuns)), btfa.NewCursor(c.Bytes(numFar))
	o := &orderReader{runs: &runs, starts: new(btfa.Cursor), far: &far, place: newPlace(0)}
	rests := make([][]byte, n)
	for i := range all {
		rests[i] = c.Bytes(all[i].bytes)
	}
	if c.Err != nil || !some {
		return nil, c.Err
	}
	var r *moduleReader
	if told > 0 {
		st, err := base()
		if err != nil {
			return nil, err
		}
		joined, err := decode(ctx, st, c.Rest(), math.MaxInt32, nil)
		if err != nil {
			return nil, err
		}
		if r, err = newModuleReader(st, joined); err != nil {
			return nil, err
		}
	}
	if c.End(); c.Err != nil {
		return nil, c.Err
	}
	var out []Module
	room := limits.PartSize
	for i, t := range all {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		btf := rests[i]
		if t.types >= 0 {
			if t.types > len(r.st.types)-r.at {
				return nil, errWrong
			}
			u := r.next(t.types)
			list, err := r.list(o, u, t.strings)
			if err == nil {
				btf, err = r.build(ctx, u, list, rests[i], room)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", t.name, err)
			}
		}
		if room -= len(btf); room < 0 {
			return nil, &limits.Exceeded{Max: limits.PartSize, What: "bytes of modules"}
		}
		if wanted(t.name) {
			out = append(out, Module{t.name, btf})
		}
	}
	if r != nil && r.at != len(r.st.types) || runs.Len()+far.Len() > 0 {
		return nil, errWrong
	}
	return out, nil
}
