// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/internal/limits"
)

// Extras are a kernel's configuration and symbols: lines, each of which ends with a newline. Nil is what is not known.
//
// They are told as one list of lines from that of a kernel which is likely to have the same ones: one of its ancestors, as
// near as it can be while few have to be read for one.
type Extras struct {
	Config, Symbols []byte
}

// lineBytes is what a line takes at least: "t x", and its end.
const lineBytes = 4

func (x *Extras) size() int { return len(x.Config) + len(x.Symbols) }

// lines joins the two, which are within limits.
func (x *Extras) lines() (*lines, error) {
	switch {
	case len(x.Config) > limits.KconfigBytes:
		return nil, &limits.Exceeded{Max: limits.KconfigBytes, What: "bytes of configuration"}
	case len(x.Symbols) > limits.SymbolBytes:
		return nil, &limits.Exceeded{Max: limits.SymbolBytes, What: "bytes of symbols"}
	}
	l := &lines{text: slices.Concat(x.Config, x.Symbols)}
	for i, c := range l.text {
		if c == '\n' {
			l.ends = append(l.ends, uint32(i+1))
		}
	}
	for _, part := range [][]byte{x.Config, x.Symbols} {
		if len(part) > 0 && part[len(part)-1] != '\n' {
			return nil, errors.New("configuration or symbols: the last line has no end")
		}
	}
	if len(l.ends) > len(l.text)/lineBytes {
		return nil, errors.New("configuration or symbols: too many short lines")
	}
	return l, nil
}

// lines are text, and where each line of it ends. They are immutable.
type lines struct {
	text []byte
	ends []uint32
}

func (l *lines) line(i int) []byte {
	if i == 0 {
		return l.text[:l.ends[0]]
	}
	return l.text[l.ends[i-1]:l.ends[i]]
}

// encodeLines returns what the chunk of lines holds that are encoded against a parent's.
func encodeLines(parent, l *lines) [][]byte {
	first := make(map[string]int) // the first line of the parent that is the same and has not been taken, counted from 1
	next := make([]int, len(parent.ends))
	for i := len(parent.ends) - 1; i >= 0; i-- {
		text := string(parent.line(i))
		next[i], first[text] = first[text], i+1
	}
	items := make([]item, len(l.ends))
	var fresh []byte
	for i := range items {
		text := l.line(i)
		at := first[string(text)]
		if at == 0 {
			items[i].kind = runNew
			fresh = append(fresh, text...)
			continue
		}
		items[i] = item{runCopy, uint32(at - 1)}
		first[string(text)] = next[at-1]
	}
	o := &orderWriter{strings: true, place: newPlace(len(parent.ends))}
	o.write(items)
	var head []byte
	for _, n := range []int{len(l.ends), len(o.runs), len(o.starts), len(o.far)} {
		head = binary.AppendUvarint(head, uint64(n))
	}
	return [][]byte{head, o.runs, o.starts, o.far, fresh}
}

// decodeLines is the inverse of encodeLines, for lines of size bytes.
func decodeLines(ctx context.Context, parent *lines, payload []byte, size int64) (*lines, error) {
	c := btfa.NewCursor(payload)
	n := c.Count(int(size/lineBytes), "lines")
	var streams [3]btfa.Cursor
	var lens [3]int
	for i := range lens {
		lens[i] = c.Count(len(payload), "bytes of runs")
	}
	for i, n := range lens {
		streams[i] = btfa.NewCursor(c.Bytes(n))
	}
	if c.Err != nil {
		return nil, c.Err
	}
	fresh := c.Rest()
	if size > int64(len(parent.text)+len(fresh)) { // as no line is taken twice
		return nil, errWrong
	}
	l := &lines{text: make([]byte, 0, size), ends: make([]uint32, 0, n)}
	add := func(line []byte) bool {
		if len(line) == 0 || len(line) > cap(l.text)-len(l.text) {
			return false
		}
		l.text = append(l.text, line...)
		l.ends = append(l.ends, uint32(len(l.text)))
		return true
	}
	o := &orderReader{runs: &streams[0], starts: &streams[1], far: &streams[2], place: newPlace(len(parent.ends))}
	for len(l.ends) < n && o.runs.Err == nil {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		kind, run := o.run(n - len(l.ends))
		if kind == runCopy {
			o.start()
		}
		for ; run > 0; run-- {
			var line []byte
			switch kind {
			case runCopy:
				if i, ok := o.take(); ok {
					line = parent.line(int(i))
				}
			case runNew:
				line = fresh[:bytes.IndexByte(fresh, '\n')+1]
				fresh = fresh[len(line):]
			}
			if !add(line) {
				return nil, errWrong
			}
		}
	}
	for i := range streams {
		if streams[i].End(); streams[i].Err != nil {
			return nil, fmt.Errorf("runs: %w", streams[i].Err)
		}
	}
	if len(l.text) != int(size) || len(fresh) > 0 {
		return nil, errWrong
	}
	return l, nil
}

// extrasChunk is where the chunk with the extras is, behind all others of the kernel.
func (e *Entry) extrasChunk() (offset, size int64) {
	return e.offset + e.Packed - e.ExtrasPacked, e.ExtrasPacked
}

// hasExtras reports whether the configuration or the symbols of a kernel are there.
func (e *Entry) hasExtras() bool { return e.Config+e.Symbols > 0 }

// Extras returns the configuration and the symbols of kernel i, as far as they are there. They must not be changed.
func (f *File) Extras(ctx context.Context, i int) (x Extras, err error) {
	e := &f.entries[i]
	if !e.hasExtras() {
		return x, nil
	}
	l, err := f.lines(ctx, i)
	if err != nil {
		return x, err
	}
	if e.Config > 0 {
		x.Config = l.text[:e.Config:e.Config]
	}
	if e.Symbols > 0 {
		x.Symbols = l.text[e.Config:]
	}
	return x, nil
}

// lines returns the extras of kernel i, or none for -1. Those that they are encoded against are read one after the other.
func (f *File) lines(ctx context.Context, i int) (*lines, error) {
	var todo []*Entry
	var numbers []int
	l := new(lines)
	for i >= 0 {
		if known := f.known.get(i); known != nil {
			l = known
			break
		}
		e, err := f.entry(ctx, i)
		if err != nil {
			return nil, err
		}
		if len(todo) > limits.ExtrasChain {
			return nil, fmt.Errorf("encoded against more than %d others", limits.ExtrasChain)
		}
		todo, numbers = append(todo, e), append(numbers, i)
		i = e.extrasFrom
	}
	for j, e := range slices.Backward(todo) {
		offset, packed := e.extrasChunk()
		payload, err := f.chunk(ctx, offset, packed, -1, nil)
		if err == nil {
			l, err = decodeLines(ctx, l, payload, e.Config+e.Symbols)
		}
		if err == nil && e.Config > 0 && l.text[e.Config-1] != '\n' {
			err = errWrong
		}
		if err != nil {
			return nil, e.wrap(ctx, offset, err)
		}
		f.known.put(numbers[j], l)
	}
	return l, nil
}

// keepLines is how many lists of lines are remembered: what kernels of a series are encoded against, mostly.
const keepLines = 4

// Extras says what else is known of the kernel, which must stay as it is until the kernel has been made.
func (k *Kernel) Extras(x Extras) error {
	if x.size() == 0 {
		return nil
	}
	l, err := x.lines()
	if err != nil {
		return err
	}
	k.lines, k.entry.Config, k.entry.Symbols = l, int64(len(x.Config)), int64(len(x.Symbols))
	return nil
}

// Lacks reports whether the kernel in the file that has the key of k is there without configuration or symbols that k has.
func (w *Writer) Lacks(k *Kernel) bool {
	p := w.at[k.entry.Key.Canonical()]
	return p != nil && (p.Config == 0 && k.entry.Config > 0 || p.Symbols == 0 && k.entry.Symbols > 0)
}

// planExtras chooses what a kernel's extras are encoded against: what they were encoded against before, if their chunk can be copied,
// or else the extras of the next ancestor that has as many, or some.
func (w *Writer) planExtras(p *plan) {
	p.extrasFrom = -1
	if p.job.lines == nil {
		return
	}
	if k := p.job; k.from != nil && k.from == w.source {
		o := &k.from.entries[k.number]
		from, ok := w.extrasOf[o.extrasFrom]
		if o.Config == p.Config && o.Symbols == p.Symbols {
			w.extrasOf[k.number] = len(w.plans)
			if ok && w.extrasDepth(from) <= limits.ExtrasChain {
				p.extrasFrom, p.extrasCopied = from, true
				return
			}
		}
	}
	for i := p.parent; i >= 0; i = w.plans[i].parent {
		from := w.plans[i]
		if !from.hasExtras() || w.extrasDepth(i) > limits.ExtrasChain {
			continue
		}
		if p.extrasFrom < 0 {
			p.extrasFrom = i
		}
		if (from.Config > 0 || p.Config == 0) && (from.Symbols > 0 || p.Symbols == 0) {
			p.extrasFrom = i
			return
		}
	}
}

// extrasDepth is how many the extras of a kernel are encoded against that are encoded against those of kernel i.
func (w *Writer) extrasDepth(i int) (n int) {
	for ; i >= 0; i = w.plans[i].extrasFrom {
		n++
	}
	return n
}

// extrasChunk returns the chunk of a kernel's extras.
func (w *Writer) extrasChunk(ctx context.Context, m *Maker, k *Kernel) ([]byte, error) {
	if k.plan.extrasCopied {
		offset, n := k.from.entries[k.number].extrasChunk()
		chunk := make([]byte, n)
		return chunk, readFull(k.from.r, chunk, offset)
	}
	parent, err := w.file.lines(ctx, k.entry.extrasFrom)
	if err != nil {
		return nil, err
	}
	chunk, _, err := m.pack(encodeLines(parent, k.lines)...)
	if err == nil {
		w.file.known.put(k.plan.number, k.lines)
	}
	return chunk, err
}
