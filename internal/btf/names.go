// SPDX-License-Identifier: Apache-2.0

package btf

import (
	"bytes"
	"context"
	"slices"

	"github.com/btfgen/btfgen/internal/limits"
)

// EssentialLen returns the length of name without its flavor: all before the
// last ___ that has a character other than an underscore on either side
// (bpf_core_essential_name_len of libbpf).
func EssentialLen[S string | []byte](name S) int {
	for i := len(name) - 5; i >= 0; i-- {
		if name[i+4] != '_' && name[i+3] == '_' && name[i+2] == '_' && name[i+1] == '_' && name[i] != '_' {
			return i + 1
		}
	}
	return len(name)
}

// Essential returns name without its flavor.
func Essential[S string | []byte](name S) S { return name[:EssentialLen(name)] }

// Names is a set of essential names to look for, numbered from 0 in the order
// in which they were given. The zero value is empty. It is immutable once
// built and safe for many goroutines.
type Names struct {
	index map[string]int

	// filter has a bit for the hash of what strings with a name of the set
	// begin with, its end or flavor included. Most strings need no look-up.
	filter [64]uint64
}

const filterPrefix = 4 // bytes

// NewNames returns the set of names, which must be essential names. Of equal
// ones the first counts.
func NewNames(names []string) *Names {
	n := &Names{index: make(map[string]int, len(names))}
	for i, s := range names {
		if _, ok := n.index[s]; ok || s == "" {
			continue
		}
		n.index[s] = i
		n.admit(s + "___")
		n.admit(s + "\x00")
	}
	return n
}

// admit lets strings that begin with s through the filter.
func (n *Names) admit(s string) {
	switch {
	case len(s) >= filterPrefix:
		h := prefixHash(s)
		n.filter[h>>6] |= 1 << (h & 63)
	case len(s) == filterPrefix-1: // the next string of the section follows, whatever it is
		for c := range 256 {
			n.admit(s + string([]byte{byte(c)}))
		}
	default:
		for i := range n.filter {
			n.filter[i] = ^uint64(0)
		}
	}
}

func prefixHash[S string | []byte](s S) uint {
	w := uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
	return uint(w * 0x9e3779b1 >> 20)
}

// mayHave reports whether the set may have the name that s begins with.
func (n *Names) mayHave(s []byte) bool {
	if len(s) < filterPrefix { // the last string of a section
		return len(s) > 1
	}
	h := prefixHash(s)
	return n.filter[h>>6]&(1<<(h&63)) != 0
}

// Number returns the number of the essential name of the string that s begins with, and whether the set has it. What
// follows the string, which ends with a NUL byte, does not matter. There is an error where it
// begins like a name of the set and is too long to be read.
func (n *Names) Number(s []byte) (int, bool, error) {
	if !n.mayHave(s) {
		return 0, false, nil
	}
	return n.number(s[:max(bytes.IndexByte(s, 0), 0)])
}

// number is Number for a whole string that the set may have.
func (n *Names) number(s []byte) (int, bool, error) {
	if len(s) > limits.NameBytes {
		return 0, false, &limits.Exceeded{Max: limits.NameBytes, What: "bytes in a name"}
	}
	i, ok := n.index[string(Essential(s))]
	return i, ok, nil
}

// Has reports whether the set has this name.
func (n *Names) Has(name string) bool {
	_, ok := n.index[name]
	return ok
}

// findChunk is how many types Find looks at between two looks at its context,
// less than a millisecond's work.
const findChunk = 1 << 14

// Find returns, for each number of names, the IDs of b's own types with that
// essential name in ascending order, whatever their kind. out is reused when
// it is large enough. There is an error where more types than limits.Candidates
// have one name, where a type's name begins like one that is looked for and is too
// long to be read, and when the context ends.
func (b *BTF) Find(ctx context.Context, names *Names, size int, out [][]TypeID) ([][]TypeID, error) {
	if cap(out) < size {
		out = make([][]TypeID, size)
	}
	out = out[:size]
	for i := range out {
		out[i] = out[i][:0]
	}
	for named := range slices.Chunk(b.named, findChunk) {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		for _, n := range named {
			s := b.tail(n.name)
			if !names.mayHave(s) {
				continue
			}
			i, ok, err := names.number(b.Name(n.name))
			if err != nil {
				return out, err
			}
			if !ok {
				continue
			}
			if out[i] = append(out[i], n.id); len(out[i]) > limits.Candidates {
				return out, &limits.Exceeded{Max: limits.Candidates, What: "candidates of one name"}
			}
		}
	}
	return out, nil
}
