// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/btfa"
)

// TestOrders encodes and decodes lists whose items are taken from their parent's in any order.
func TestOrders(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 63, 64, 65, 66, 130, 5000} {
		for round := range 50 {
			list := r.Perm(n)
			if round%2 > 0 { // mostly in order
				slices.Sort(list)
				for range round {
					if i := r.IntN(n + 1); i < n {
						at := list[i]
						list = slices.Insert(slices.Delete(list, i, i+1), r.IntN(n), at)
					}
				}
			}
			items := make([]item, 0, n)
			for _, at := range list {
				switch r.IntN(1 + 2*round) {
				case 0:
					items = append(items, item{kind: runNext})
				case 1:
					items = append(items, item{runOld, uint32(at)})
				default:
					items = append(items, item{runCopy, uint32(at)})
				}
			}
			o := newOrderReader(make([]btfa.Cursor, orderStreams), n, n)
			var w orderWriter
			w.add(items)
			for i, s := range w.s {
				o.s[i] = btfa.NewCursor(s)
			}
			var got []item
			for len(got) < len(items) && o.err() == nil {
				for kind, at, end := o.run(len(items) - len(got)); at < end; at++ {
					it := item{kind: uint8(kind)}
					if kind != runNext {
						it.at = uint32(at)
					}
					got = append(got, it)
				}
			}
			if err := end(o.s, streamTypes); err != nil || !slices.Equal(got, items) {
				t.Fatalf("%d items, round %d: another order, error %v", n, round, err)
			}
		}
	}
}
