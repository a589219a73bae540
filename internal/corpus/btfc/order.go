// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"encoding/binary"
	"errors"

	"github.com/btfgen/btfgen/internal/btfa"
)

// Kinds of runs. A list is encoded as runs against another one, the list of the parent.
const (
	runCopy    = 0 // items of the parent's list
	runChanged = 1 // types: new contents for the entities of items of the parent's list
	runDerived = 1 // strings: the next names in the order in which the types use them first
	runNew     = 2 // new contents, names or lines
	runOld     = 3 // consecutive numbers
)

// Starts of copy and changed runs in the parent's list.
const (
	startNext = 0 // where the last one ended
	startBack = 1 // where the one ended that was left by startFar
	startFar  = 2 // at a distance from where the last one ended
	startSkip = 3 // and more: at a distance of 1 or more
)

// The streams of an order.
const (
	orderRuns = iota
	orderStarts
	orderFar
	orderStreams = orderFar + farStreams
)

// place is a position in the parent's list, and which of its items have been taken.
type place struct {
	here, back int
	taken      []bool // by position
}

// skip returns the first position from i on that has not been taken, but at most maxSkip further, so that hostile lists take no
// longer than others.
func (p *place) skip(i int) int {
	for end := min(i+maxSkip, len(p.taken)); i < end && p.taken[i]; {
		i++
	}
	return i
}

const maxSkip = 64

// orderReader reads the order of a list.
type orderReader struct {
	place
	s    []btfa.Cursor // orderStreams of them
	high int           // no position from here on has been taken
	old  uint32        // behind the last runOld
}

func newOrderReader(s []btfa.Cursor, n int) *orderReader {
	return &orderReader{place: place{taken: make([]bool, n)}, s: s}
}

var (
	errRun   = errors.New("a run goes beyond its end")
	errStart = errors.New("a run begins outside")
)

// err returns the first error of the streams.
func (o *orderReader) err() error {
	for i := range o.s {
		if o.s[i].Err != nil {
			return o.s[i].Err
		}
	}
	return nil
}

// same reports whether a list of n items equals the parent's, and reads its order if so.
func (o *orderReader) same(n int) bool {
	runs, starts := o.s[orderRuns], o.s[orderStarts]
	if n == 0 || n != len(o.taken) || runs.Uvarint() != uint64(n-1)<<2|runCopy || starts.Byte() != startNext {
		return false
	}
	o.s[orderRuns], o.s[orderStarts] = runs, starts
	return true
}

// run returns the kind and length of the next run, which is at most room.
func (o *orderReader) run(room int) (kind, n int) {
	v := o.s[orderRuns].Uvarint()
	if v>>2 >= uint64(room) {
		o.s[orderRuns].Fail(errRun)
		return runNew, 0
	}
	return int(v & 3), int(v>>2) + 1
}

// start moves to where a run begins in the parent's list.
func (o *orderReader) start() {
	switch c := o.s[orderStarts].Byte(); c {
	case startNext:
	case startBack:
		o.here, o.back = o.back, o.here
	case startFar:
		to := int64(o.here) + btfa.Unzigzag(readFar(o.s[orderFar:]))
		if to < 0 || to > int64(len(o.taken)) {
			o.s[orderFar].Fail(errStart)
			return
		}
		o.here, o.back = int(to), o.here
	default:
		o.here = min(o.skip(o.here)+int(c)-startSkip+1, len(o.taken))
	}
}

// take takes up to n items of the parent's list, those from at to end. If there is none, the runs fail.
func (o *orderReader) take(n int) (at, end int) {
	at = o.skip(o.here)
	end = min(at+n, len(o.taken))
	if at < o.high {
		for n = at; n < end && !o.taken[n]; {
			n++
		}
		end = n
	}
	if at == end {
		o.s[orderRuns].Fail(errRun)
	}
	for i := at; i < end; i++ {
		o.taken[i] = true
	}
	o.here, o.high = end, max(o.high, end)
	return at, end
}

// takeOld returns the first number of a run of n old ones below limit. After an error end is 0.
func (o *orderReader) takeOld(n, limit int) (first, end uint32) {
	to := int64(o.old) + btfa.Unzigzag(readFar(o.s[orderFar:]))
	if to < 0 || to > int64(limit-n) {
		o.s[orderFar].Fail(errStart)
		return 0, 0
	}
	o.old = uint32(to) + uint32(n)
	return uint32(to), o.old
}

// item is an element of a list to be encoded.
type item struct {
	kind uint8  // of run
	at   uint32 // for runCopy and runChanged the position in the parent's list, for runOld the number, else 0
}

// orderWriter writes the order of a list.
type orderWriter struct {
	place
	s   [orderStreams][]byte
	old uint32
}

// encodeOrder returns the streams of a list. The parent's list has n items. With strings, kind 1 is runDerived instead of runChanged.
func encodeOrder(items []item, n int, strings bool) [][]byte {
	o := &orderWriter{place: place{taken: make([]bool, n)}}
	for len(items) > 0 {
		first, n := items[0], 1
		switch {
		case first.kind == runCopy, first.kind == runChanged && !strings:
			o.start(int(first.at))
			for ; ; n++ {
				o.taken[o.here] = true
				o.here++
				if next := o.skip(o.here); n == len(items) || items[n] != (item{first.kind, uint32(next)}) {
					break
				} else {
					o.here = next
				}
			}
		case first.kind == runOld:
			for n < len(items) && items[n] == (item{runOld, first.at + uint32(n)}) {
				n++
			}
			appendFar(o.s[orderFar:], btfa.Zigzag(int64(first.at)-int64(o.old)))
			o.old = first.at + uint32(n)
		default:
			for n < len(items) && items[n].kind == first.kind {
				n++
			}
		}
		o.s[orderRuns] = binary.AppendUvarint(o.s[orderRuns], uint64(n-1)<<2|uint64(first.kind))
		items = items[n:]
	}
	return o.s[:]
}

// start writes where a run begins, and moves there.
func (o *orderWriter) start(to int) {
	code := byte(startFar)
	next := o.skip(o.here)
	switch {
	case to == next:
		code = startNext
	case to == o.skip(o.back):
		code, o.back = startBack, o.here
	case to > next && to-next <= 255-startSkip+1:
		code = byte(startSkip + to - next - 1)
	default:
		appendFar(o.s[orderFar:], btfa.Zigzag(int64(to)-int64(o.here)))
		o.back = o.here
	}
	o.here = to
	o.s[orderStarts] = append(o.s[orderStarts], code)
}

// farStreams is the number of streams of numbers that are likely to be large: the low 8 bits, the next 8, and the others.
const farStreams = 3

func appendFar(s [][]byte, v uint64) {
	s[0] = append(s[0], byte(v))
	s[1] = append(s[1], byte(v>>8))
	s[2] = binary.AppendUvarint(s[2], v>>16)
}

func readFar(s []btfa.Cursor) uint64 {
	low, mid := uint64(s[0].Byte()), uint64(s[1].Byte())
	return low | mid<<8 | s[2].Uvarint()<<16
}
