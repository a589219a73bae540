// SPDX-License-Identifier: Apache-2.0

package btfc

import "math/bits"

// bitList is a list of bits that counts those that are set.
type bitList struct {
	words []uint64
	ones  []uint32 // how many are set in the words before each
	n     int
	set   int // how many are set
}

// add appends a bit.
func (b *bitList) add(set bool) {
	v := uint64(0)
	if set {
		v = 1
	}
	b.append(v, 1)
}

// append appends the lowest n bits of v, of which the others are 0. They must fit into the last word, or into a new one.
func (b *bitList) append(v uint64, n int) {
	if b.n%64 == 0 {
		b.ones = append(b.ones, uint32(b.set))
		b.words = append(b.words, 0)
	}
	b.words[b.n/64] |= v << (b.n % 64)
	b.n += n
	b.set += bits.OnesCount64(v)
}

// copy appends bits first to end of another list.
func (b *bitList) copy(from *bitList, first, end int) {
	for first < end {
		n := min(64-b.n%64, 64-first%64, end-first)
		b.append(from.words[first/64]>>(first%64)&(^uint64(0)>>(64-n)), n)
		first += n
	}
}

// has returns bit i.
func (b *bitList) has(i int) bool { return b.words[i/64]>>(i%64)&1 != 0 }

// rank returns how many of the first i bits are set.
func (b *bitList) rank(i int) int {
	at := (i - 1) / 64
	if i == 0 {
		return 0
	}
	return int(b.ones[at]) + bits.OnesCount64(b.words[at]<<(63-(i-1)%64))
}
