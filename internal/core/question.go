// SPDX-License-Identifier: Apache-2.0

package core

import (
	"iter"
	"math/bits"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/pkg/relo"
)

// question is everything in a relocation that the target side depends on:
// relocations with the same question have the same outcomes on every candidate.
// Kinds that take different values from one match (byte_off, byte_sz, …) share one.
type question struct {
	spec     *spec // spec of the first relocation
	name     int   // number of the name of the root
	rootKind btf.Kind
	kinds    uint16 // bit set of Kind
}

func (q *question) hasKind(k relo.Kind) bool { return q.kinds&(1<<k) != 0 }

// number returns the number of a kind in the order of each.
func (q *question) number(k relo.Kind) int { return bits.OnesCount16(q.kinds & (1<<k - 1)) }

// each yields the kinds in ascending order, numbered from 0.
func (q *question) each() iter.Seq2[int, relo.Kind] {
	return func(yield func(int, relo.Kind) bool) {
		for i, left := 0, q.kinds; left != 0; i, left = i+1, left&(left-1) {
			if !yield(i, relo.Kind(bits.TrailingZeros16(left))) {
				return
			}
		}
	}
}
