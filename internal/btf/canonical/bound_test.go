// SPDX-License-Identifier: Apache-2.0

package canonical_test

import (
	"context"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/btf/canonical"
	"github.com/btfgen/btfgen/internal/testing/testlimit"
)

// shapes returns n types that no kernel has. They need as many rounds as a chain has links.
var shapes = map[string]func(n int) []*canonical.Type{
	"arrays of arrays": func(n int) (l []*canonical.Type) {
		for i := range n {
			l = append(l, &canonical.Type{Kind: btf.KindArray, Fields: []canonical.Field{{Lo: 1}}, Refs: []int{i - 1, canonical.Void}})
		}
		return l
	},
	"pointers, the last first": func(n int) (l []*canonical.Type) {
		for i := range n {
			to := i + 1
			if to == n {
				to = canonical.Void
			}
			l = append(l, &canonical.Type{Kind: btf.KindPtr, Refs: []int{to}})
		}
		return l
	},
	"anonymous structs": func(n int) (l []*canonical.Type) {
		for i := range n {
			t := &canonical.Type{Kind: btf.KindStruct, Size: 8, Fields: []canonical.Field{{}}, Refs: []int{i - 1}}
			if i%2 == 0 {
				t.Fields, t.Refs = append(t.Fields, canonical.Field{Lo: 64}), append(t.Refs, i/2-1)
			}
			l = append(l, t)
		}
		return l
	},
	"a ring with a knot": func(n int) (l []*canonical.Type) {
		for i := range n {
			t := &canonical.Type{Kind: btf.KindStruct, Name: "s", Size: 8, Fields: []canonical.Field{{Name: "next"}}, Refs: []int{(i + 1) % n}}
			if i == 0 {
				t.Size = 16
			}
			l = append(l, t)
		}
		return l
	},
	"two chains and what refers to all of the one": func(n int) (l []*canonical.Type) {
		hub := &canonical.Type{Kind: btf.KindStruct, Name: "hub", Size: 8}
		for i := range n / 2 {
			hub.Fields, hub.Refs = append(hub.Fields, canonical.Field{}), append(hub.Refs, len(l))
			for range 2 {
				l = append(l, &canonical.Type{Kind: btf.KindPtr, Refs: []int{max(2*i-2, -1)}})
			}
		}
		return append(l, hub)
	},
	"a ring by the Fibonacci word": func(n int) (l []*canonical.Type) {
		a, b := "0", "01"
		for len(b) < n {
			a, b = b, b+a
		}
		for i := range n {
			l = append(l, &canonical.Type{Kind: btf.KindStruct, Name: "s" + b[i:i+1], Fields: []canonical.Field{{}}, Refs: []int{(i + 1) % n}})
		}
		return l
	},
}

// TestSteps checks that Merge takes n log n steps for chains of any length.
func TestSteps(t *testing.T) {
	const n = 40_000
	for name, make := range shapes {
		t.Run(name, func(t *testing.T) {
			types := make(n)
			size := 0
			for _, o := range types {
				size += 1 + len(o.Fields) + len(o.Refs)
			}
			const looks = 4096 // steps from one look at the context to the next
			ctx := testlimit.Looks(4 * size * bits.Len(uint(size)) / looks)
			if _, err := canonical.Merge(ctx, types); err != nil {
				t.Errorf("%d types with %d fields and references: more than four times n log n steps", n, size)
			}
		})
	}
}

// TestStopped checks that Merge ends with its context.
func TestStopped(t *testing.T) {
	if _, err := canonical.Merge(testlimit.Looks(3), shapes["arrays of arrays"](40_000)); err != context.Canceled {
		t.Errorf("error %v", err)
	}
}

// TestShapes compares Merge with byRounds on small shapes in any order.
func TestShapes(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for name, make := range shapes {
		for n := 2; n < 60; n += 1 + n/8 {
			compareOrder(t, fmt.Sprint(name, " ", n), permute(rnd, make(n)))
		}
	}
	for i := range 3000 {
		compareOrder(t, fmt.Sprint("random ", i), random(rnd, 1+rnd.IntN(60)))
	}
}
