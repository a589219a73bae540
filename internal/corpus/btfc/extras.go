// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/internal/limits"
)

// Extras are the configuration and the symbols of a kernel: lines with a newline each. Nil is unknown. Both are encoded as one list
// of lines.
type Extras struct {
	Config, Symbols []byte
}

// lineBytes is the minimum of bytes of a line: "t x" and the newline.
const lineBytes = 4

// lines are text and the ends of its lines. They do not change.
type lines struct {
	text []byte
	ends []uint32
}

// lines joins the two.
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

func (l *lines) line(i int) []byte {
	if i == 0 {
		return l.text[:l.ends[0]]
	}
	return l.text[l.ends[i-1]:l.ends[i]]
}

// encodeLines returns the parts of the payload of lines.
func encodeLines(parent, l *lines) [][]byte {
	first := make(map[string]int, len(parent.ends)) // the first such line of the parent that has not been taken, from 1
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
	order := encodeOrder(items, len(parent.ends), true)
	head := binary.AppendUvarint(nil, uint64(len(l.ends)))
	for _, s := range order {
		head = binary.AppendUvarint(head, uint64(len(s)))
	}
	return append(append([][]byte{head}, order...), fresh)
}

// decodeLines is the inverse of encodeLines, for lines of size bytes.
func decodeLines(ctx context.Context, parent *lines, payload []byte, size int64) (*lines, error) {
	c := btfa.NewCursor(payload)
	n := c.Count(int(size/lineBytes), "lines")
	o := newOrderReader(make([]btfa.Cursor, orderStreams), len(parent.ends))
	var lens [orderStreams]int
	for i := range lens {
		lens[i] = c.Count(len(payload), "bytes of runs")
	}
	for i, n := range lens {
		o.s[i] = btfa.NewCursor(c.Bytes(n))
	}
	if c.Err != nil {
		return nil, c.Err
	}
	fresh := c.Rest()
	l := &lines{text: make([]byte, 0, size), ends: make([]uint32, 0, n)}
	add := func(line []byte) bool {
		if len(line) == 0 || len(line) > cap(l.text)-len(l.text) {
			return false
		}
		l.text = append(l.text, line...)
		l.ends = append(l.ends, uint32(len(l.text)))
		return true
	}
	for len(l.ends) < n && o.err() == nil {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		switch kind, run := o.run(n - len(l.ends)); kind {
		case runCopy:
			for o.start(); run > 0 && o.err() == nil; {
				at, end := o.take(run)
				for run -= end - at; at < end; at++ {
					if !add(parent.line(at)) {
						return nil, errWrong
					}
				}
			}
		case runNew:
			for range run {
				line := fresh[:bytes.IndexByte(fresh, '\n')+1]
				if fresh = fresh[len(line):]; !add(line) {
					return nil, errWrong
				}
			}
		default:
			return nil, errWrong
		}
	}
	if err := end(o.s, streamTypes); err != nil {
		return nil, err
	}
	if len(l.text) != int(size) || len(fresh) > 0 {
		return nil, errWrong
	}
	return l, nil
}

// Extras returns the configuration and the symbols of kernel i. They must not be changed.
func (f *File) Extras(ctx context.Context, i int) (x Extras, err error) {
	e := &f.entries[i]
	if !e.has(partExtras) {
		return x, nil
	}
	l, err := f.extras.get(ctx, chunkID{partExtras, i})
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

// decodeExtras decodes the extras of a kernel.
func (f *File) decodeExtras(ctx context.Context, id chunkID, depth int) (*lines, error) {
	if id.kernel < 0 {
		return new(lines), nil
	}
	e, err := f.entry(ctx, id.kernel)
	if err != nil {
		return nil, err
	}
	parent, err := f.parentLines(ctx, e, depth)
	if err != nil {
		return nil, err
	}
	payload, err := f.read(ctx, e.chunks[partExtras], nil)
	var l *lines
	if err == nil {
		l, err = decodeLines(ctx, parent, payload, e.Config+e.Symbols)
	}
	if err == nil && e.Config > 0 && l.text[e.Config-1] != '\n' {
		err = errWrong
	}
	if err != nil {
		return nil, e.wrap(ctx, partExtras, err)
	}
	return l, nil
}

// parentLines returns the lines that those of a kernel are encoded against.
func (f *File) parentLines(ctx context.Context, e *Entry, depth int) (*lines, error) {
	parent, err := f.parent(ctx, partExtras, e)
	if err != nil {
		return nil, err
	}
	return f.extras.at(ctx, parent, depth+1)
}
