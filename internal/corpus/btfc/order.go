// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math/bits"

	"github.com/btfgen/btfgen/internal/btfa"
)

// A list is told as runs. Most continue where the last one ended in the parent's list.
const (
	runCopy    = 0 // items of the parent's list, in its order
	runChanged = 1 // types: new contents for items of the parent's list
	runDerived = 1 // strings: in the order in which the types use them first
	runNew     = 2
	runOld     = 3 // what an ancestor knows: a number and those that follow
)

// Where a run begins in the parent's list.
const (
	startNext = 0 // where the last one ended
	startBack = 1 // where the one ended that was left for another place
	startFar  = 2 // at a distance
	startSkip = 3 // this, and more: so many items are left out, and one
)

const maxSkip = 100

// place walks the parent's list, passing over what has been taken.
type place struct {
	n          uint32 // of the list
	here, back uint32

	// levels have bits: the first of positions, whether they have been taken; each other one of the words of the one before,
	// whether they are full. The position behind the last one is never taken, so no search goes beyond it.
	levels [][]uint64
}

func newPlace(n int) *place {
	p := &place{n: uint32(n)}
	for words := n + 1; words > 1 || p.levels == nil; {
		words = (words + 63) / 64
		p.levels = append(p.levels, make([]uint64, words))
	}
	return p
}

// free returns the first position from i on that has not been taken, or the list's length.
func (p *place) free(i uint32) uint32 {
	for l := 0; ; l++ {
		if rest := ^p.levels[l][i/64] >> (i % 64); rest != 0 {
			i += uint32(bits.TrailingZeros64(rest))
			for ; l > 0; l-- {
				i = i*64 + uint32(bits.TrailingZeros64(^p.levels[l-1][i]))
			}
			return i
		}
		i = i/64 + 1
	}
}

// freeUntil returns where the free positions end that begin with i: at most at end, which is behind i.
func (p *place) freeUntil(i, end uint32) uint32 {
	for i < end {
		if rest := p.levels[0][i/64] >> (i % 64); rest != 0 {
			return min(i+uint32(bits.TrailingZeros64(rest)), end)
		}
		i = i/64*64 + 64
	}
	return end
}

// take takes positions that are free, from i up to end.
func (p *place) take(i, end uint32) {
	for i < end {
		next := min(i/64*64+64, end)
		p.set(i/64, ^uint64(0)>>(64-(next-i))<<(i%64))
		i = next
	}
}

// set sets bits of a word of positions.
func (p *place) set(word uint32, mask uint64) {
	for _, level := range p.levels {
		level[word] |= mask
		if level[word] != ^uint64(0) {
			return
		}
		word, mask = word/64, 1<<(word%64)
	}
}

// orderReader reads a list's order.
type orderReader struct {
	runs, starts, far *btfa.Cursor
	place             *place
	old               uint32
}

var (
	errRun   = errors.New("a run goes beyond its end")
	errStart = errors.New("a run begins outside")
)

// err returns the first error of any stream.
func (o *orderReader) err() error { return cmp.Or(o.runs.Err, o.starts.Err, o.far.Err) }

// same reports whether a list of n items is the parent's as it is, in which case it has been read.
func (o *orderReader) same(n int) bool {
	runs, starts := *o.runs, *o.starts
	if n == 0 || n != int(o.place.n) || runs.Uvarint() != uint64(n-1)<<2|runCopy || starts.Byte() != startNext {
		return false
	}
	*o.runs, *o.starts = runs, starts
	return true
}

// run returns the kind and length of the next run, which is at most room.
func (o *orderReader) run(room int) (kind, n int) {
	v := o.runs.Uvarint()
	if n := v >> 2; n >= uint64(room) {
		o.runs.Fail(errRun)
		return runNew, 0
	}
	return int(v & 3), int(v>>2) + 1
}

// start goes to where a run begins in the parent's list.
func (o *orderReader) start() {
	p := o.place
	e := p.free(p.here)
	switch c := o.starts.Byte(); c {
	case startNext:
		p.here = e
	case startBack:
		p.here, p.back = p.free(p.back), p.here
	case startFar:
		to := int64(e) + btfa.Unzigzag(o.far.Uvarint())
		if to < 0 || to > int64(p.n) {
			o.far.Fail(errStart)
			return
		}
		p.back, p.here = p.here, p.free(uint32(to))
	default:
		for ; c >= startSkip && e < p.n; c-- {
			e = p.free(e + 1)
		}
		p.here = e
	}
}

// take returns the next free position of the parent's list.
func (o *orderReader) take() (uint32, bool) {
	p := o.place
	i := p.free(p.here)
	if i == p.n {
		o.runs.Fail(errRun)
		return 0, false
	}
	p.take(i, i+1)
	p.here = i + 1
	return i, true
}

// takeRun appends the next n items of the parent's list that are free to out.
func (o *orderReader) takeRun(out, from []uint32, n int) []uint32 {
	p := o.place
	for n > 0 {
		i := p.free(p.here)
		if i == p.n {
			o.runs.Fail(errRun)
			return out
		}
		p.here = p.freeUntil(i, min(i+uint32(n), p.n))
		p.take(i, p.here)
		out = append(out, from[i:p.here]...)
		n -= int(p.here - i)
	}
	return out
}

// oldRun returns the number that a run of old ones begins with.
func (o *orderReader) oldRun(n, limit int) uint32 {
	to := int64(o.old) + btfa.Unzigzag(o.far.Uvarint())
	if to < 0 || to > int64(limit-n) {
		o.far.Fail(errStart)
		return 0
	}
	o.old = uint32(to) + uint32(n)
	return uint32(to)
}

// item is one of a list that is to be told: a kind of run, and for runCopy and runChanged a position in the
// parent's list, for runOld the number.
type item struct {
	kind uint8
	at   uint32
}

// orderWriter writes a list's order.
type orderWriter struct {
	strings           bool // that runs may be derived, rather than changed
	runs, starts, far []byte
	place             *place
	old               uint32
}

func (o *orderWriter) write(items []item) {
	for i := 0; i < len(items); {
		kind := items[i].kind
		n := 1
		switch {
		case kind == runCopy, kind == runChanged && !o.strings:
			o.start(items[i].at)
			p := o.place
			for q := p.free(p.here); ; n++ {
				p.take(q, q+1)
				p.here = q + 1
				q = p.free(p.here)
				if i+n == len(items) || items[i+n] != (item{kind, q}) {
					break
				}
			}
		case kind == runOld:
			for i+n < len(items) && items[i+n] == (item{kind, items[i].at + uint32(n)}) {
				n++
			}
			o.far = binary.AppendUvarint(o.far, btfa.Zigzag(int64(items[i].at)-int64(o.old)))
			o.old = items[i].at + uint32(n)
		default:
			for i+n < len(items) && items[i+n].kind == kind {
				n++
			}
		}
		o.runs = binary.AppendUvarint(o.runs, uint64(n-1)<<2|uint64(kind))
		i += n
	}
}

// start tells where a run begins.
func (o *orderWriter) start(to uint32) {
	p := o.place
	e := p.free(p.here)
	switch {
	case to == e:
		o.starts = append(o.starts, startNext)
		p.here = e
		return
	case to == p.free(p.back):
		o.starts = append(o.starts, startBack)
		p.here, p.back = to, p.here
		return
	case to > e && to-e < 4*maxSkip:
		skip := 0
		for q := e; q < to && skip < maxSkip; skip++ {
			q = p.free(q + 1)
			if q == to {
				o.starts = append(o.starts, byte(startSkip+skip))
				p.here = to
				return
			}
		}
	}
	o.starts = append(o.starts, startFar)
	o.far = binary.AppendUvarint(o.far, btfa.Zigzag(int64(to)-int64(e)))
	p.back, p.here = p.here, to
}
