// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// The modules of a kernel are told together, as one more kernel that has all of its types and, behind these, those of one module after
// the other. Types and names of the kernel, which split BTF refers to by number, are thus what they are for other types of
// the kernel, and what modules have in common is guessed from the modules before. What that kernel is encoded against knows all that the kernel does and,
// of the next of the kernel's ancestors that has modules, these. Each module's strings are told as the order in which its types use names first.

// table says of each module how it is told.
type table struct {
	name    string
	types   int // of its own, or -1 if it is kept as bytes
	strings int // of its own
	bytes   int // of what is neither types nor strings, or of all
}

// sumModules returns the SHA-256 of modules, and of how many bytes it is: their names and sizes, and their BTF.
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

// modules returns what the chunk of modules holds. st is the state of their kernel, nil if that is kept as bytes.
func (w *Writer) modules(ctx context.Context, k *Kernel, st *state) ([][]byte, error) {
	if st != nil {
		parts, m, err := w.encodeModules(ctx, k, st)
		if err == nil {
			w.file.modules.put(k.plan.number, m)
			return parts, nil
		}
		if k.entry.modulesFrom = -1; ctx.Err() != nil {
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

// encodeModules encodes modules, and makes sure that they can be put together again. It chooses what they are encoded against.
func (w *Writer) encodeModules(ctx context.Context, k *Kernel, st *state) (parts [][]byte, m *moduleState, err error) {
	e := &k.entry
	for i := e.parent; i >= 0 && e.modulesFrom < 0; {
		from, err := w.file.entry(ctx, i)
		if err != nil {
			return nil, nil, err
		}
		if from.Modules > 0 {
			e.modulesFrom = i
		}
		i = from.parent
	}
	before, err := w.file.modulesBefore(ctx, e)
	if err != nil {
		return nil, nil, err
	}
	base, err := st.with(before)
	if err != nil {
		return nil, nil, err
	}
	var known *known
	if base == st {
		known = w.knownOfParent(k.plan.number, st)
	} else {
		known = newKnown(base)
	}
	parts, m, err = encodeModules(ctx, st, base, known, k)
	if err != nil {
		return nil, nil, err
	}
	c, err := parseModules(slices.Concat(parts...), e.Modules)
	if err != nil {
		return nil, nil, err
	}
	all, err := c.read(ctx, m)
	if err == nil && !slices.EqualFunc(all, k.modules, func(a, b Module) bool { return bytes.Equal(a.BTF, b.BTF) }) {
		err = errModel
	}
	return parts, m, err
}

func appendTable(b []byte, t table) []byte {
	b = append(append(b, t.name...), 0)
	b = binary.AppendUvarint(b, uint64(t.types+1))
	if t.types >= 0 {
		b = binary.AppendUvarint(b, uint64(t.strings))
	}
	return binary.AppendUvarint(b, uint64(t.bytes))
}

// encodeModules returns the chunk's parts for modules of the kernel with state st, encoded against base, and what is known when they have been read. Modules that the
// model cannot tell are kept as bytes.
func encodeModules(ctx context.Context, st, base *state, known *known, k *Kernel) ([][]byte, *moduleState, error) {
	p, err := parse(known, k.btf)
	if err != nil {
		return nil, nil, err
	}
	p.rest, p.strings = nil, nil
	first := len(p.types)
	var head, rest []byte
	all := make([]table, len(k.modules))
	lists := make([][]uint32, len(k.modules))
	for i, mod := range k.modules {
		had := len(p.types)
		own, list, _, err := p.take(known, mod.BTF, first, p.names)
		t := table{mod.Name, len(p.types) - had, len(list), len(own)}
		if err != nil {
			p.types = p.types[:had]
			t, own, list = table{mod.Name, -1, 0, len(mod.BTF)}, mod.BTF, nil
		}
		head, rest = appendTable(head, t), append(rest, own...)
		all[i], lists[i] = t, list
	}
	p.used = make([]bool, len(p.fresh))
	payload := slices.Concat(write(base, p, match(base, known, p, len(st.types)), nil).parts()...)
	joined, err := decode(ctx, base, payload, math.MaxInt32, nil)
	if err != nil {
		return nil, nil, err
	}
	m := &moduleState{st, joined}
	r, err := newModuleReader(m)
	if err != nil {
		return nil, nil, err
	}
	o := &orderWriter{strings: true, place: newPlace(0)}
	for i, t := range all {
		if t.types >= 0 {
			o.write(derivedItems(r.next(t.types).take(nil, math.MaxInt32), lists[i]))
		}
	}
	head = binary.AppendUvarint(binary.AppendUvarint(head, uint64(len(o.runs))), uint64(len(o.far)))
	return [][]byte{head, o.runs, o.far, rest, payload}, m, nil
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

// newModuleReader returns a reader of the modules of a kernel, which m has behind the kernel's types.
func newModuleReader(m *moduleState) (*moduleReader, error) {
	st, joined := m.kernel, m.all
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

// moduleState is what is known when the modules of a kernel have been read.
type moduleState struct {
	kernel *state // of the kernel alone
	all    *state // of it and its modules; that of the kernel if these are all kept as bytes
}

// keepModules is how many of them are remembered: those that others are encoded against next, and few, as they are large.
const keepModules = 3

// moduleChunk is a chunk of modules, taken apart.
type moduleChunk struct {
	entry  *Entry // whose it is, and where, if it is from a file
	offset int64

	all     []table
	told    bool // some are not kept as bytes
	o       *orderReader
	rests   [][]byte
	payload []byte // as that of a kernel, if some are told
}

// parseModules takes the chunk of n modules apart, which it goes on to refer to.
func parseModules(payload []byte, n int) (*moduleChunk, error) {
	cursor := btfa.NewCursor(payload)
	c, m := &cursor, &moduleChunk{all: make([]table, n), rests: make([][]byte, n)}
	for i := range m.all {
		t := &m.all[i]
		t.name = string(c.Text())
		if err := kernel.CheckName(t.name); err != nil {
			c.Fail(fmt.Errorf("module %d: %w", i, err))
		}
		if i > 0 && m.all[i-1].name >= t.name {
			c.Fail(errors.New("names out of order"))
		}
		if t.types = c.Count(limits.PartSize, "types") - 1; t.types >= 0 {
			t.strings = c.Count(limits.PartSize, "strings")
			m.told = true
		}
		t.bytes = c.Count(len(payload), "bytes")
	}
	numRuns := c.Count(len(payload), "bytes")
	numFar := c.Count(len(payload), "bytes")
	runs, far := btfa.NewCursor(c.Bytes(numRuns)), btfa.NewCursor(c.Bytes(numFar))
	m.o = &orderReader{runs: &runs, starts: new(btfa.Cursor), far: &far, place: newPlace(0)}
	for i := range m.rests {
		m.rests[i] = c.Bytes(m.all[i].bytes)
	}
	if m.told {
		m.payload = c.Rest()
	}
	c.End()
	return m, c.Err
}

// join returns the state of a kernel with the modules of a chunk, encoded against base.
func (c *moduleChunk) join(ctx context.Context, kernel, base *state) (*moduleState, error) {
	if !c.told {
		return &moduleState{kernel, kernel}, nil
	}
	all, err := decode(ctx, base, c.payload, math.MaxInt32, nil)
	if err != nil {
		return nil, err
	}
	return &moduleState{kernel, all}, nil
}

// read returns the modules. It is called once.
func (c *moduleChunk) read(ctx context.Context, m *moduleState) (out []Module, err error) {
	var r *moduleReader
	if c.told {
		if r, err = newModuleReader(m); err != nil {
			return nil, err
		}
	}
	room := limits.PartSize
	for i, t := range c.all {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		btf := c.rests[i]
		if t.types >= 0 {
			if t.types > len(r.st.types)-r.at {
				return nil, errWrong
			}
			u := r.next(t.types)
			list, err := r.list(c.o, u, t.strings)
			if err == nil {
				btf, err = r.build(ctx, u, list, c.rests[i], room)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", t.name, err)
			}
		}
		if room -= len(btf); room < 0 {
			return nil, &limits.Exceeded{Max: limits.PartSize, What: "bytes of modules"}
		}
		out = append(out, Module{t.name, btf})
	}
	if r != nil && r.at != len(r.st.types) || c.o.runs.Len()+c.o.far.Len() > 0 {
		return nil, errWrong
	}
	return out, nil
}

// Modules returns the BTF of the modules of kernel i that are wanted, in order of their names. It returns an error if the modules, wanted or not, do not
// have the SHA-256 that the index says.
func (f *File) Modules(ctx context.Context, i int, wanted func(name string) bool) ([]Module, error) {
	if f.entries[i].Modules == 0 {
		return nil, nil
	}
	c, err := f.moduleChunk(ctx, i)
	if err != nil || !slices.ContainsFunc(c.all, func(t table) bool { return wanted(t.name) }) {
		return nil, err
	}
	m := f.modules.get(i)
	if m == nil {
		from, err := f.modulesBefore(ctx, &f.entries[i])
		if err == nil {
			m, err = f.join(ctx, i, c, from)
		}
		if err != nil {
			return nil, err
		}
	}
	all, err := c.read(ctx, m)
	if err == nil {
		var sum [SumSize]byte
		if sum, _, err = sumModules(all); err == nil && sum != c.entry.ModulesSum {
			err = errSum
		}
	}
	if err != nil {
		return nil, c.entry.wrap(ctx, c.offset, err)
	}
	return slices.DeleteFunc(all, func(m Module) bool { return !wanted(m.Name) }), nil
}

// moduleChunk reads the chunk of the modules of kernel i.
func (f *File) moduleChunk(ctx context.Context, i int) (*moduleChunk, error) {
	e, err := f.entry(ctx, i)
	if err != nil {
		return nil, err
	}
	offset, packed := e.chunk()
	offset += packed
	var c *moduleChunk
	payload, err := f.chunk(ctx, offset, e.ModulesPacked, e.modules, nil)
	if err == nil {
		c, err = parseModules(payload, e.Modules)
	}
	if err != nil {
		return nil, e.wrap(ctx, offset, err)
	}
	c.entry, c.offset = e, offset
	return c, nil
}

// join returns the state of kernel i with its modules, of which c is the chunk, and remembers it. It is encoded against what modulesBefore returns.
func (f *File) join(ctx context.Context, i int, c *moduleChunk, from *moduleState) (m *moduleState, err error) {
	var st, base *state
	if c.told {
		if st, err = f.states.get(ctx, i); err == nil {
			base, err = st.with(from)
		}
		if err != nil {
			return nil, err
		}
	}
	if m, err = c.join(ctx, st, base); err != nil {
		return nil, c.entry.wrap(ctx, c.offset, err)
	}
	f.modules.put(i, m)
	return m, nil
}

// modulesBefore returns the state of the modules that those of a kernel are encoded against, or nil. What these are encoded against is read first, one after
// the other.
func (f *File) modulesBefore(ctx context.Context, e *Entry) (m *moduleState, err error) {
	var todo []int
	for i := e.modulesFrom; i >= 0 && m == nil; {
		if m = f.modules.get(i); m == nil {
			from, err := f.entry(ctx, i)
			if err != nil {
				return nil, err
			}
			todo = append(todo, i)
			i = from.modulesFrom
		}
	}
	for _, i := range slices.Backward(todo) {
		c, err := f.moduleChunk(ctx, i)
		if err == nil {
			m, err = f.join(ctx, i, c, m)
		}
		if err != nil {
			return nil, err
		}
	}
	return m, nil
}

// with returns a state that knows all that st does, numbered as there, and behind that what m knows of the modules of one of its ancestors. Its types are
// those of st, and those of these modules that are none of them. Where m is nil or knows nothing, st is enough.
func (st *state) with(m *moduleState) (*state, error) {
	if m == nil || m.all == m.kernel {
		return st, nil
	}
	from, known := m.all, m.kernel
	names, contents := from.numNames-known.numNames, from.numContents-known.numContents
	v := &state{
		names: goOn(st.names, st.numNames, names), numNames: st.numNames, textBytes: st.textBytes + from.textBytes - known.textBytes,
		contents: goOn(st.contents, st.numContents, contents), numContents: st.numContents, numWords: st.numWords + from.numWords - known.numWords,
		numEnts: st.numEnts + from.numEnts - known.numEnts, types: slices.Clip(st.types),
	}
	if v.textBytes+4*(v.numWords+v.numNames+names+v.numContents+contents) > limits.CorpusChain {
		return nil, &limits.Exceeded{Max: limits.CorpusChain, What: "bytes that it is encoded against"}
	}
	after := func(n, known, own uint32) uint32 { // the number that n has here
		if n < known {
			return n
		}
		return n - known + own
	}
	name := func(n uint32) uint32 { return after(n, uint32(known.numNames), uint32(st.numNames)) }
	entity := func(e uint32) uint32 { return after(e, known.numEnts+1, st.numEnts+1) }
	for i := range uint32(names) {
		p, at := v.names[v.numNames>>pageBits], v.numNames%pageLen
		if i == 0 {
			p.text = slices.Clip(p.text) // what lies behind that is another page's
		}
		p.text = append(p.text, from.name(uint32(known.numNames)+i)...)
		p.ends[at+1] = uint32(len(p.text))
		v.numNames++
	}
	for i := range uint32(contents) {
		p, at := v.contents[v.numContents>>pageBits], v.numContents%pageLen
		if i == 0 {
			p.words = slices.Clip(p.words)
		}
		first := len(p.words)
		p.words = append(p.words, from.content(uint32(known.numContents)+i)...)
		w := p.words[first:]
		for i, word := range words(w) {
			switch word {
			case btf.Name:
				w[i] = name(w[i])
			case btf.Ref:
				w[i] = entity(w[i])
			}
		}
		p.ends[at+1] = uint32(len(p.words))
		p.entity[at] = entity(from.entity(uint32(known.numContents) + i))
		v.numContents++
	}
	there := make([]bool, v.numEnts+1)
	for _, c := range st.types {
		there[st.entity(c)] = true
	}
	for _, c := range from.types[len(known.types):] {
		c = after(c, uint32(known.numContents), uint32(st.numContents))
		if e := v.entity(c); !there[e] {
			there[e] = true
			v.types = append(v.types, c)
		}
	}
	return v, nil
}
