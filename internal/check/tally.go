// SPDX-License-Identifier: Apache-2.0

package check

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
)

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

// alike returns the kernels with equal results for object i, by the number of the list of these: see programs.
func (r *run) alike(i int) map[list]kernelSet {
	alike := make(map[list]kernelSet)
	for k := range r.kernels {
		n := r.kernels[k].programs[i]
		s := alike[n]
		s.add(k)
		alike[n] = s
	}
	return alike
}

// tally returns all findings on program j of an object with their kernels, which are those of alike. Equal sets of kernels are one slice.
// Kernels with the same lists of findings are looked at once.
func (r *run) tally(j int, alike map[list]kernelSet) (l []verdict.KernelFinding) {
	same, on := make(map[[2]int32]kernelSet), make(map[int32]kernelSet)
	for n, kernels := range alike {
		lists := [2]int32(r.found.of(n)[2*j:])
		s := same[lists]
		s.addAll(kernels)
		same[lists] = s
	}
	for lists, kernels := range same {
		for _, n := range slices.Concat(r.found.of(list(lists[0])), r.found.of(list(lists[1]))) {
			s := on[n]
			s.addAll(kernels)
			on[n] = s
		}
	}
	for n, s := range on {
		key := make([]byte, 0, 8*len(s))
		for _, w := range s {
			key = binary.NativeEndian.AppendUint64(key, w)
		}
		kernels, ok := r.sets[string(key)]
		if !ok {
			kernels = s.list()
			r.sets[string(key)] = kernels
		}
		l = append(l, verdict.KernelFinding{Finding: r.found.all[n], Kernels: kernels})
	}
	return l
}

// kept returns verdicts by kernel. Equal ones are one slice, which must not be changed.
func (r *run) kept(verdicts []rule.Status) []rule.Status {
	key := make([]byte, len(verdicts))
	for k, s := range verdicts {
		key[k] = byte(s)
	}
	if same, ok := r.verdicts[string(key)]; ok {
		return same
	}
	r.verdicts[string(key)] = verdicts
	return verdicts
}
