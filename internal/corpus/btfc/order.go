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
	runNext    = 2 // types: new contents for new entities; strings: the next names in the order in which the types use them first
	runOld     = 3 // strings: consecutive names
)

// The streams of an order.
const (
	orderRuns   = iota
	orderStarts // of runs that have one: distances from where the last run of the kind ended; copy and changed are one kind
	orderStreams
)

// orderReader reads the order of a list.
type orderReader struct {
	s      []btfa.Cursor // orderStreams of them
	limit  [4]int        // for the end of a run, by kind without its lowest bit
	last   [4]int        // the end of the last run
	failed bool          // a run is wrong. Streams that end too early are seen later
}

// newOrderReader returns a reader for a parent's list of n items, and this many names.
func newOrderReader(s []btfa.Cursor, n, names int) *orderReader {
	return &orderReader{s: s, limit: [4]int{runCopy: n, runOld &^ 1: names}}
}

var errRun = errors.New("a run goes beyond its end")

// err returns the first error of the streams.
func (o *orderReader) err() error {
	for i := range o.s {
		if o.s[i].Err != nil {
			return o.s[i].Err
		}
	}
	return nil
}

// fail notes an error of a stream.
func (o *orderReader) fail(stream int, err error) {
	o.s[stream].Fail(err)
	o.failed = true
}

// run returns the kind of the next run, which has at most room items, and where it begins and ends; for runNext, 0 and the number of
// items. If it is wrong, there are none.
func (o *orderReader) run(room int) (kind, first, end int) {
	v := o.s[orderRuns].Uvarint()
	if v>>2 >= uint64(room) {
		o.fail(orderRuns, errRun)
		return runNext, 0, 0
	}
	kind, n := int(v&3), int(v>>2)+1
	if kind == runNext {
		return kind, 0, n
	}
	at := int64(o.last[kind&2]) + btfa.Unzigzag(o.s[orderStarts].Uvarint())
	if at < 0 || at > int64(o.limit[kind&2]-n) {
		o.fail(orderStarts, errRun)
		return runNext, 0, 0
	}
	o.last[kind&2] = int(at) + n
	return kind, int(at), int(at) + n
}

// item is an element of a list to be encoded.
type item struct {
	kind uint8  // of run
	at   uint32 // for runCopy and runChanged the position in the parent's list, for runOld the name, else 0
}

// orderWriter writes the order of a list.
type orderWriter struct {
	s    [orderStreams][]byte
	last [4]uint32
}

// add appends items to the list, as runs of their own.
func (o *orderWriter) add(items []item) {
	for len(items) > 0 {
		kind, at, n := items[0].kind, items[0].at, uint32(1)
		for int(n) < len(items) && items[n].kind == kind && (kind == runNext || items[n].at == at+n) {
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
	o.s[orderRuns] = binary.AppendUvarint(o.s[orderRuns], uint64(n-1)<<2|uint64(kind))
	if kind != runNext {
		o.s[orderStarts] = binary.AppendUvarint(o.s[orderStarts], btfa.Zigzag(int64(at)-int64(o.last[kind&2])))
		o.last[kind&2] = uint32(at + n)
	}
}
