// SPDX-License-Identifier: Apache-2.0

package btf

import (
	"context"
	"fmt"
	"math/bits"
	"slices"

	"github.com/btfgen/btfgen/internal/limits"
)

// essentialLen returns the length of name without its flavor by libbpf's rule
// (bpf_core_essential_name_len): the part before the last ___ that has a character other
// than an underscore on both sides.
func essentialLen[S string | []byte](name S) int {
	for i := len(name) - 5; i >= 0; i-- {
		if name[i+4] != '_' && name[i+3] == '_' && name[i+2] == '_' && name[i+1] == '_' && name[i] != '_' {
			return i + 1
		}
	}
	return len(name)
}

// Essential returns name without its flavor.
func Essential[S string | []byte](name S) S { return name[:essentialLen(name)] }

// Loaders is a set of loaders. Each finds the flavor of a name in its own way.
type Loaders uint8

// The loaders, and where the flavor begins for each.
const (
	Libbpf Loaders = 1 << iota // the last ___ with a character other than an underscore on both sides
	Cilium                     // the last ___ that is not at the start
	Aya                        // the first ___
)

// numLoaders is the number of loaders. Each has the bit 1 << its number.
const numLoaders = 3

// essentialLens returns the length of name without its flavor for each loader.
func essentialLens[S string | []byte](name S) [numLoaders]int {
	n := len(name)
	lens := [numLoaders]int{n, n, n}
	first, last := -1, -1
	for i := 0; i+3 <= n; i++ {
		if name[i] == '_' && name[i+1] == '_' && name[i+2] == '_' {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	if first < 0 {
		return lens
	}
	lens[0], lens[2] = essentialLen(name), first
	if last > 0 {
		lens[1] = last
	}
	return lens
}

// EssentialFor returns name without its flavor for one loader.
func EssentialFor[S string | []byte](l Loaders, name S) S {
	return name[:essentialLens(name)[bits.TrailingZeros8(uint8(l))]]
}

// Agreed returns name without its flavor if all loaders agree on the flavor, and the
// whole name if they do not.
func Agreed[S string | []byte](name S) S {
	if lens := essentialLens(name); lens[0] == lens[1] && lens[0] == lens[2] {
		return name[:lens[0]]
	}
	return name
}

// SameEssential returns the loaders for which two names differ at most in their flavors.
func SameEssential[S, T string | []byte](a S, b T) (l Loaders) {
	if len(a) > 0 && len(b) > 0 && a[0] != b[0] {
		return 0
	}
	la, lb := essentialLens(a), essentialLens(b)
	for i := range numLoaders {
		if la[i] == lb[i] && string(a[:la[i]]) == string(b[:lb[i]]) {
			l |= 1 << i
		}
	}
	return l
}

// Names is a set of names to find, numbered from 0. A string matches a name if they
// differ at most in their flavors, for any loader. The zero value is empty. Names is
// immutable and safe for use by many goroutines.
type Names struct {
	names []string
	index map[string][]int // numbers of names, keyed by name without flavor

	// filter has a bit for the hash of the first bytes of each matching string, including
	// its end or the beginning of its flavor. Most strings need no look-up.
	filter [64]uint64
}

const filterPrefix = 4 // bytes

// NewNames returns the set of names. Of equal names only the first one matches.
func NewNames(names []string) *Names {
	n := &Names{names: names, index: make(map[string][]int, len(names))}
	for i, s := range names {
		for _, l := range essentialLens(s) {
			key := s[:l]
			same := func(j int) bool { return j == i || names[j] == s }
			if key == "" || slices.ContainsFunc(n.index[key], same) {
				continue
			}
			n.index[key] = append(n.index[key], i)
			n.admit(key + "___")
			n.admit(key + "\x00")
		}
	}
	return n
}

// admit adds the strings that begin with s to the filter.
func (n *Names) admit(s string) {
	switch {
	case len(s) >= filterPrefix:
		h := prefixHash(s)
		n.filter[h>>6] |= 1 << (h & 63)
	case len(s) == filterPrefix-1: // any string of the section can follow
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

// mayHave reports whether the string at the beginning of s may match a name.
func (n *Names) mayHave(s []byte) bool {
	if len(s) < filterPrefix { // the last string of a section
		return len(s) > 1
	}
	h := prefixHash(s)
	return n.filter[h>>6]&(1<<(h&63)) != 0
}

// Numbers returns the numbers of the names that the string at the beginning of s matches. The string ends with a NUL byte. The error
// says that it begins like a name and is too long.
func (n *Names) Numbers(s []byte) (found []int, err error) {
	if !n.mayHave(s) {
		return nil, nil
	}
	if s = cut(s); len(s) > limits.NameBytes {
		return nil, &limits.Exceeded{Max: limits.NameBytes, What: "bytes in a name"}
	}
	lens := essentialLens(s)
	if lens[0] == lens[1] && lens[0] == lens[2] {
		return n.index[string(s[:lens[0]])], nil
	}
	for _, l := range lens {
		for _, i := range n.index[string(s[:l])] {
			if SameEssential(n.names[i], s) != 0 && !slices.Contains(found, i) {
				found = append(found, i)
			}
		}
	}
	return found, nil
}

// Has reports whether name is a name of the set without its flavor, for any loader.
func (n *Names) Has(name string) bool { return len(n.index[name]) > 0 }

// findChunk is how many types Find reads before it checks the context, less than a millisecond of work.
const findChunk = 1 << 14

// Find returns for each number of names the IDs of b's own types of any kind whose names match, in ascending order. It reuses out if
// that is large enough. The error is that of the context, or says that more than limits.Candidates types match one name or that the
// name of a type begins like a name and is too long.
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
			if !names.mayHave(s) { // inlined here, unlike Numbers; most names end here
				continue
			}
			found, err := names.Numbers(s)
			if err != nil {
				return out, err
			}
			for _, i := range found {
				if out[i] = append(out[i], n.id); len(out[i]) > limits.Candidates {
					return out, &limits.Exceeded{Max: limits.Candidates, What: "candidates of one name"}
				}
			}
		}
	}
	return out, nil
}

// CheckNames returns an error for the first name of split BTF that begins within a string of the base. libbpf accepts such names and cilium/ebpf
// does not. No tool writes them, so the data was encoded on top of another base.
func (b *BTF) CheckNames(ctx context.Context) error {
	if b.base == nil {
		return nil
	}
	within := func(off uint32) bool {
		return off > b.base.strOff && off < b.strOff && b.base.strs[off-b.base.strOff-1] != 0
	}
	for i, start := range b.starts {
		if i%walkChunk == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		rec := b.types[start:]
		bad := within(rec[0])
		if s := Kind(rec[1] >> 24 & 0x7f).Shape(); len(s.Elem) > 0 && s.Elem[0] == Name { // such kinds have no Extra
			n := uint32(len(s.Elem))
			for at := uint32(hdrWords); at < hdrWords+n*(rec[1]&0xffffff) && !bad; at += n {
				bad = within(rec[at])
			}
		}
		if bad {
			t := b.Type(b.first + TypeID(i))
			return fmt.Errorf("types: type %d (%s) has a name that begins within a string of the base", t.ID, t.Kind())
		}
	}
	return nil
}
