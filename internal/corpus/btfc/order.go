// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"encoding/binary"
	"errors"

	"github.com/btfgen/btfgen/internal/btfa"
)

// Kinds of runs. A list is encoded as runs against another one, the list of the parent. Without runs, it is the parent's.
const (
	runCopy    = 0 // items of the parent's list
	runChanged = 1 // types: new contents for the entities of items of the parent's list
	runOld     = 1 // strings: consecutive names
	runNext    = 2 // types: new contents for new entities; strings: the next names in the order in which the types use them first
	runFront   = 3 // all types: the next ones at the front
)

// The streams of an order.
const (
	orderRuns   = iota
	orderStarts // starts of runs of the first two kinds: distances from where the last run ended or, for strings, the last run of the kind
	orderStreams
)

// orderReader reads the order of a list.
type orderReader struct {
	streams []btfa.Cursor // orderStreams of them
	limit   []int         // limit for the end of a run: one for both kinds that have a start, or one for each
	last    [2]int        // the end of the last run
	whole   bool          // there are no runs
	failed  bool          // a run is wrong. Streams that end too early are seen later
}

// newOrderReader returns a reader for a parent's list of types of so many items, or of strings and so many names.
func newOrderReader(s []btfa.Cursor, limit ...int) *orderReader {
	return &orderReader{streams: s, limit: limit, whole: s[orderRuns].Len() == 0}
}

var errRun = errors.New("a run goes beyond its end")

// err returns the first error of the streams.
func (o *orderReader) err() error {
	for i := range o.streams {
		if o.streams[i].Err != nil {
			return o.streams[i].Err
		}
	}
	return nil
}

// fail notes an error of a stream.
func (o *orderReader) fail(stream int, err error) {
	o.streams[stream].Fail(err)
	o.failed = true
}

// run returns the kind of the next run, which has at most room items, and where it begins and ends; for kinds without a start, 0 and the
// number of items. If it is wrong, there are none.
func (o *orderReader) run(room int) (kind, first, end int) {
	if n := o.limit[0]; o.whole && n <= room {
		o.whole = false
		return runCopy, 0, n
	}
	v := o.streams[orderRuns].Uvarint()
	if v>>2 >= uint64(room) {
		o.fail(orderRuns, errRun)
		return runNext, 0, 0
	}
	kind, n := int(v&3), int(v>>2)+1
	if kind >= runNext {
		return kind, 0, n
	}
	which := min(kind, len(o.limit)-1)
	at := int64(o.last[which]) + btfa.Unzigzag(o.streams[orderStarts].Uvarint())
	if at < 0 || at > int64(o.limit[which]-n) {
		o.fail(orderStarts, errRun)
		return runNext, 0, 0
	}
	o.last[which] = int(at) + n
	return kind, int(at), int(at) + n
}

// item is an element of a list to be encoded.
type item struct {
	kind uint8  // runCopy to runFront
	at   uint32 // position in the parent's list for runCopy and runChanged, the name for runOld, else 0
}

// orderWriter writes the order of a list.
type orderWriter struct {
	streams [orderStreams][]byte
	kinds   uint8 // how many kinds of runs have ends of their own in last: 1 for types, 2 for strings
	last    [2]uint32
}

// add appends items to the list, as runs of their own.
func (o *orderWriter) add(items []item) {
	for len(items) > 0 {
		kind, at, n := items[0].kind, items[0].at, uint32(1)
		for int(n) < len(items) && items[n].kind == kind && (kind >= runNext || items[n].at == at+n) {
			n++
		}
		o.run(kind, int(at), int(n))
		items = items[n:]
	}
}

// run appends a run of n items to the list, if there are any.
func (o *orderWriter) run(kind uint8, at, n int) {
	if n == 0 {
		return
	}
	o.streams[orderRuns] = binary.AppendUvarint(o.streams[orderRuns], uint64(n-1)<<2|uint64(kind))
	if kind < runNext {
		last := &o.last[kind%o.kinds]
		o.streams[orderStarts] = binary.AppendUvarint(o.streams[orderStarts], btfa.Zigzag(int64(at)-int64(*last)))
		*last = uint32(at + n)
	}
}
