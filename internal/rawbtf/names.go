package rawbtf

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

	// Most names need no look-up: their first four bytes, or two if short is
	// set, are those of no name of the set.
	four  [64]uint64 // bits by hash
	two   [1 << 10]uint64
	short bool // there are names of less than three bytes
}

// NewNames returns the set of names, which must be essential names. Of equal
// ones the first counts.
func NewNames(names []string) *Names {
	n := &Names{index: make(map[string]int, len(names))}
	for i, s := range names {
		if _, ok := n.index[s]; ok || s == "" {
			continue
		}
		n.index[s] = i
		// What follows a name is its end or its flavor.
		ended, flavored := s+"\x00", s+"___"
		if len(s) < 3 {
			n.short = true
			set(n.two[:], hash2(ended))
			set(n.two[:], hash2(flavored))
			continue
		}
		set(n.four[:], hash4(ended))
		set(n.four[:], hash4(flavored))
	}
	return n
}

// hash2 and hash4 return a bit's number for the first bytes of a name.
func hash2[S string | []byte](s S) uint { return uint(s[0])<<8 | uint(s[1]) }

func hash4[S string | []byte](s S) uint {
	w := uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
	return uint(w * 0x9e3779b1 >> 20)
}

func set(bits []uint64, i uint) { bits[i>>6] |= 1 << (i & 63) }

func isSet(bits []uint64, i uint) bool { return bits[i>>6]&(1<<(i&63)) != 0 }

// mayHave reports whether the set may have the name that s begins with.
func (n *Names) mayHave(s []byte) bool {
	if len(s) < 4 { // the last string of a section
		return len(s) > 1
	}
	return isSet(n.four[:], hash4(s)) || n.short && isSet(n.two[:], hash2(s))
}

// Has reports whether the set has this name.
func (n *Names) Has(name string) bool {
	_, ok := n.index[name]
	return ok
}

// Find returns, for each number of names, the IDs of b's own types with that
// essential name in ascending order, whatever their kind. out is reused when
// it is large enough.
func (b *BTF) Find(names *Names, size int, out [][]TypeID) [][]TypeID {
	if cap(out) < size {
		out = make([][]TypeID, size)
	}
	out = out[:size]
	for i := range out {
		out[i] = out[i][:0]
	}
	for _, n := range b.named {
		s := b.tail(n.name)
		if !names.mayHave(s) {
			continue
		}
		if i, ok := names.index[string(Essential(b.Name(n.name)))]; ok {
			out[i] = append(out[i], n.id)
		}
	}
	return out
}
