// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"math/rand/v2"
	"testing"
)

// TestPlace takes positions in runs and alone, and compares what is free then with a list.
func TestPlace(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 62, 63, 64, 65, 4094, 4095, 4096, 4097, 70_000} {
		p := newPlace(n)
		taken := make([]bool, n+1)
		free := func(i int) int {
			for i < n && taken[i] {
				i++
			}
			return i
		}
		for done := 0; done < n; {
			i := int(p.free(uint32(r.IntN(n + 1))))
			if i == n {
				i = free(0)
			}
			end := int(p.freeUntil(uint32(i), uint32(min(i+1+r.IntN(n), n))))
			for at := i; at < end; at++ {
				if taken[at] {
					t.Fatalf("%d positions: %d is taken, in free ones from %d to %d", n, at, i, end)
				}
				taken[at] = true
			}
			p.take(uint32(i), uint32(end))
			done += end - i
			for range 50 {
				if at := r.IntN(n + 1); int(p.free(uint32(at))) != free(at) {
					t.Fatalf("%d positions: from %d on, %d is free, want %d", n, at, p.free(uint32(at)), free(at))
				}
			}
		}
		if got := p.free(0); got != uint32(n) {
			t.Errorf("%d positions: all are taken, and %d is free", n, got)
		}
	}
}
