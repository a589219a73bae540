// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
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
				case 2:
					items = append(items, item{kind: runFront})
				case 1:
					items = append(items, item{runOld, uint32(at)})
				default:
					items = append(items, item{runCopy, uint32(at)})
				}
			}
			// Of strings, or of types, where starts of both kinds follow each other.
			kinds := 1 + round/2%2
			w := orderWriter{kinds: uint8(kinds)}
			w.add(items)
			var s [orderStreams]btfa.Cursor
			for i := range s {
				s[i] = btfa.NewCursor(w.streams[i])
			}
			o := newOrderReader(s[:], slices.Repeat([]int{n}, kinds)...)
			var got []item
			for len(got) < len(items) && o.err() == nil {
				for kind, at, end := o.run(len(items) - len(got)); at < end; at++ {
					it := item{kind: uint8(kind)}
					if kind < runNext {
						it.at = uint32(at)
					}
					got = append(got, it)
				}
			}
			if err := end(o.streams, streamTypes); err != nil || !slices.Equal(got, items) {
				t.Fatalf("%d items, round %d: another order, error %v", n, round, err)
			}
		}
	}
}

// TestBackRefused decodes backs that do not fit to their fronts: types at the front have no place or too many, or there are more or fewer new
// names, entities and contents than the front says.
func TestBackRefused(t *testing.T) {
	btf := testbtf.Types(t, binary.LittleEndian, "struct a 8: x u32 0, y u32 4\nproto p u32: p u32\nfunc f p\nstruct b 4: z u32 0\nfunc g p")
	_, parts, err := encode(newState(), btf)
	if err != nil {
		t.Fatal(err)
	}
	front, back := parts.joined()
	if _, err := decode(newState(), front, back, int64(len(btf)), nil); err != nil {
		t.Fatal(err)
	}
	var fronts, backs [numStreams][]byte
	copy(fronts[:], parts.front[1:])
	copy(backs[:], parts.back[1:])
	names, entities := int(front[0]), int(front[1])
	if names == 0 || entities == 0 {
		t.Fatalf("%d names and %d entities at the back", names, entities)
	}
	types := len(fronts[streamKinds]) + len(backs[streamKinds])
	run := func(kind, n int) byte { return byte((n-1)<<2 | kind) }
	for name, change := range map[string]func(front, back *[numStreams][]byte, names, entities *int){
		"more names":     func(_, _ *[numStreams][]byte, names, _ *int) { *names++ },
		"fewer names":    func(_, _ *[numStreams][]byte, names, _ *int) { *names-- },
		"more entities":  func(_, _ *[numStreams][]byte, _, entities *int) { *entities++ },
		"fewer entities": func(_, _ *[numStreams][]byte, _, entities *int) { *entities-- },
		"only front":     func(_, back *[numStreams][]byte, _, _ *int) { back[streamTypes] = []byte{run(runFront, types)} },
		"only back":      func(_, back *[numStreams][]byte, _, _ *int) { back[streamTypes] = []byte{run(runNext, types)} },
		"no order":       func(_, back *[numStreams][]byte, _, _ *int) { back[streamTypes] = nil },
		"a type too few": func(_, back *[numStreams][]byte, _, _ *int) { back[streamTypes] = back[streamTypes][1:] },
		"a type too many": func(_, back *[numStreams][]byte, _, _ *int) {
			back[streamTypes] = append(bytes.Clone(back[streamTypes]), run(runNext, 1))
		},
		"a kind too few": func(_, back *[numStreams][]byte, _, _ *int) { back[streamKinds] = back[streamKinds][1:] },
		"front of front": func(front, _ *[numStreams][]byte, _, _ *int) {
			front[streamTypes] = []byte{run(runFront, len(front[streamKinds]))}
		},
		"copies of nothing": func(front, _ *[numStreams][]byte, _, _ *int) { front[streamTypes] = nil },
	} {
		f, b, n, e := fronts, backs, names, entities
		change(&f, &b, &n, &e)
		front, back := payloads{front: join(&f, n, e), back: join(&b)}.joined()
		if _, err := decode(newState(), front, back, int64(len(btf)), nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
