// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
)

// tally collects the findings on a program. Kernels with the same are looked at
// once.
type tally struct {
	*ledger
	same []*alike // in order of the first kernel
	by   map[[2]list]*alike
}

// alike are kernels with the same lists of findings.
type alike struct {
	lists   [2]list
	kernels kernelSet
}

// kernelSet is a set of indices of kernels, as bits.
type kernelSet []uint64

func (s *kernelSet) add(n int) {
	for len(*s) <= n/64 {
		*s = append(*s, 0)
	}
	(*s)[n/64] |= 1 << (n % 64)
}

func (s *kernelSet) addAll(t kernelSet) {
	for i, w := range t {
		if i == len(*s) {
			*s = append(*s, 0)
		}
		(*s)[i] |= w
	}
}

// list returns the indices, ascending.
func (s kernelSet) list() (l []int) {
	for i, w := range s {
		for ; w != 0; w &= w - 1 {
			l = append(l, 64*i+bits.TrailingZeros64(w))
		}
	}
	return l
}

// add adds the findings on the next kernel.
func (t *tally) add(kernel int, lists [2]list) {
	a := t.by[lists]
	if a == nil {
		a = &alike{lists: lists}
		if t.by == nil {
			t.by = make(map[[2]list]*alike)
		}
		t.by[lists] = a
		t.same = append(t.same, a)
	}
	a.kernels.add(kernel)
}

// findings returns all findings with their kernels. Equal sets of kernels are one slice,
// which sets knows.
func (t *tally) findings(sets map[string][]int) (l []KernelFinding) {
	at := make(map[int32]int) // place in of
	var of []kernelSet
	var found []int32
	for _, a := range t.same {
		for _, l := range a.lists {
			for _, n := range t.of(l) {
				i, ok := at[n]
				if !ok {
					i = len(of)
					at[n] = i
					of, found = append(of, nil), append(found, n)
				}
				of[i].addAll(a.kernels)
			}
		}
	}
	l = slices.Grow(l, len(of))
	for i, s := range of {
		key := make([]byte, 0, 8*len(s))
		for _, w := range s {
			key = binary.NativeEndian.AppendUint64(key, w)
		}
		kernels, ok := sets[string(key)]
		if !ok {
			kernels = s.list()
			sets[string(key)] = kernels
		}
		l = append(l, KernelFinding{t.all[found[i]], kernels})
	}
	return l
}

// sortRow sorts the findings on a program: the worst first, of these the ones that most
// kernels have.
func sortRow(l []KernelFinding) {
	slices.SortStableFunc(l, func(a, b KernelFinding) int {
		if c := cmp.Or(-cmp.Compare(a.Status, b.Status), -cmp.Compare(len(a.Kernels), len(b.Kernels))); c != 0 {
			return c
		}
		return cmp.Or(a.Finding.compare(&b.Finding), slices.Compare(a.Kernels, b.Kernels))
	})
}
