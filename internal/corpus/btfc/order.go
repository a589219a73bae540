// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"encoding/binary"
	"errors"
	"iter"

	"github.com/btfgen/btfgen/internal/btfa"
)

// Kinds of runs. A list is encoded as runs against another one, the list of the parent.
const (
	runCopy    = 0 // items of the parent's list
	runChanged = 1 // types: new contents for the entities of items of the parent's list
	runNext    = 2 // types: new contents for new entities; strings: the next names in the order in which the types use them first
	runOld     = 3 // consecutive numbers
)

// The streams of an order.
const (
	orderRuns   = iota
	orderStarts // of runs that have one
	orderStreams
)

// place is a position in the parent's list, and which of its items have been taken.
type place struct {
	here  int
	taken []bool // by position
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
	s   []btfa.Cursor // orderStreams of them
	old uint32        // behind the last runOld
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

// run returns the kind and length of the next run, which is at most room.
func (o *orderReader) run(room int) (kind, n int) {
	v := o.s[orderRuns].Uvarint()
	if v>>2 >= uint64(room) {
		o.s[orderRuns].Fail(errRun)
		return runNext, 0
	}
	return int(v & 3), int(v>>2) + 1
}

// copies reads where a run of n items of the parent's list begins, and yields their positions, from one to another. It takes the items.
func (o *orderReader) copies(n int) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		for o.here = int(o.seek(int64(o.skip(o.here)), len(o.taken))); n > 0 && o.err() == nil; {
			at := o.skip(o.here)
			end := at
			for ; end < min(at+n, len(o.taken)) && !o.taken[end]; end++ {
				o.taken[end] = true
			}
			if at == end {
				o.s[orderRuns].Fail(errRun)
			}
			n -= end - at
			if o.here = end; !yield(at, end) {
				return
			}
		}
	}
}

// seek reads a distance, and returns the position at that distance from another one. After an error it returns 0.
func (o *orderReader) seek(from int64, limit int) int64 {
	to := from + btfa.Unzigzag(o.s[orderStarts].Uvarint())
	if to < 0 || to > int64(limit) {
		o.s[orderStarts].Fail(errStart)
		return 0
	}
	return to
}

// takeOld returns the numbers of a run of n old ones below limit. After an error there are none.
func (o *orderReader) takeOld(n, limit int) (first, end uint32) {
	first = uint32(o.seek(int64(o.old), limit-n))
	if o.err() != nil {
		return 0, 0
	}
	o.old = first + uint32(n)
	return first, o.old
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

// newOrderWriter returns a writer of a list whose parent's list has n items.
func newOrderWriter(n int) *orderWriter { return &orderWriter{place: place{taken: make([]bool, n)}} }

// add appends items to the list, as runs of their own.
func (o *orderWriter) add(items []item) {
	for len(items) > 0 {
		first, n := items[0], 1
		switch first.kind {
		case runCopy, runChanged:
			o.seek(o.skip(o.here), int(first.at))
			o.here = int(first.at)
			for ; ; n++ {
				o.taken[o.here] = true
				o.here++
				if next := o.skip(o.here); n == len(items) || items[n] != (item{first.kind, uint32(next)}) {
					break
				} else {
					o.here = next
				}
			}
		case runOld:
			for n < len(items) && items[n] == (item{runOld, first.at + uint32(n)}) {
				n++
			}
			o.seek(int(o.old), int(first.at))
			o.old = first.at + uint32(n)
		default:
			for n < len(items) && items[n].kind == first.kind {
				n++
			}
		}
		o.s[orderRuns] = binary.AppendUvarint(o.s[orderRuns], uint64(n-1)<<2|uint64(first.kind))
		items = items[n:]
	}
}

// seek writes the distance of one position from another.
func (o *orderWriter) seek(from, to int) {
	o.s[orderStarts] = binary.AppendUvarint(o.s[orderStarts], btfa.Zigzag(int64(to)-int64(from)))
}
