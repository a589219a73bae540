// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
)

// changing returns kernels. Some of them have the types of the one before, some have fewer and some have others.
func changing(t testing.TB) []input {
	var all []input
	for n := range 70 {
		var b strings.Builder
		for i := range 60 {
			fmt.Fprintf(&b, "struct s%d %d: next *s%d 0, data%d u8[%d] 8\n", i, 64+n/4*i%5+n%4/3, (i+1)%60, (i+n%4/3)%4, 4+i%7)
		}
		for i := range 6 - n%4 { // of four kernels two lose something, and have nothing new; and the third changes all for a while
			fmt.Fprintf(&b, "enum e%d 4: A%d 1\n", i, i)
		}
		all = append(all, in(fmt.Sprintf("6.1.0-%d-amd64", n), testbtf.Types(t, binary.LittleEndian, b.String())))
	}
	return all
}

// TestParts reads parts of kernels in several orders and by several goroutines, and compares them with those that each kernel gives alone.
func TestParts(t *testing.T) {
	raceflag.SkipSerial(t)
	all := changing(t)
	data := written(t, nil, all...)
	q := NewQuery(map[string]btf.Reach{"s1": btf.ReachValue, "s3": btf.ReachAll, "e2": btf.ReachValue})
	want := make([][]byte, len(all))
	for i := range all {
		var err error
		if want[i], err = open(t, data).For(q).Part(ctx, i, nil); err != nil {
			t.Fatal(err)
		}
		if len(want[i]) < 100 || len(want[i]) > len(all[i].btf) {
			t.Fatalf("kernel %d: a part of %d bytes, of %d", i, len(want[i]), len(all[i].btf))
		}
	}
	inOrder := make([]int, len(all))
	for i := range inOrder {
		inOrder[i] = i
	}
	for round, order := range [][]int{inOrder, rand.New(rand.NewPCG(1, 2)).Perm(len(all))} {
		p := open(t, data).For(q)
		for workers := range 3 {
			next := make(chan int, len(order))
			for _, i := range order {
				next <- i
			}
			close(next)
			var g errgroup.Group
			for range 1 + 3*workers {
				g.Go(func() error {
					for i := range next {
						if got, err := p.Part(ctx, i, nil); err != nil || !bytes.Equal(got, want[i]) {
							return fmt.Errorf("round %d, kernel %d: another part, error %v", round, i, err)
						}
					}
					return nil
				})
			}
			if err := g.Wait(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestReadOrder reads kernels in any order, some of them more than once, with several goroutines.
func TestReadOrder(t *testing.T) {
	if !raceflag.Enabled {
		slow.Skip(t)
	}
	all := changing(t)
	data := written(t, nil, all...)
	r := rand.New(rand.NewPCG(1, 2))
	rounds := 30
	if raceflag.Enabled {
		rounds = 12
	}
	for round := range rounds {
		f := open(t, data)
		order := r.Perm(len(all))
		if round%2 == 0 {
			slices.Sort(order)
		}
		wanted := slices.DeleteFunc(slices.Clone(order), func(int) bool { return r.IntN(1+round%4) > 0 })
		next := make(chan int, 3*len(all))
		for _, i := range slices.Concat(wanted, wanted, order) {
			next <- i
		}
		close(next)
		var g errgroup.Group
		for range 1 + round%3 {
			g.Go(func() error {
				for i := range next {
					if got, err := f.BTF(ctx, i, nil); err != nil || !bytes.Equal(got, all[i].btf) {
						return fmt.Errorf("round %d, kernel %d: other bytes, error %v", round, i, err)
					}
				}
				return nil
			})
		}
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
	}
}

// TestPartsAndModules reads modules with a query, which is about kernels only.
func TestPartsAndModules(t *testing.T) {
	k := withModules(t, binary.LittleEndian)
	f := open(t, written(t, nil, k)).For(NewQuery(map[string]btf.Reach{"ext0_0": btf.ReachValue}))
	if _, err := f.Part(ctx, 0, nil); err != ErrWhole {
		t.Errorf("part of a kernel with modules: error %v", err)
	}
	modules, err := f.Modules(ctx, 0)
	if err != nil || !slices.EqualFunc(modules, k.modules, func(a, b Module) bool { return bytes.Equal(a.BTF, b.BTF) }) {
		t.Errorf("%d modules of %d, error %v", len(modules), len(k.modules), err)
	}
}
