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
	index  map[string]int
	filter [1 << 10]uint64 // by the first two bytes: most names need no look-up
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
		if len(s) == 1 {
			n.set(s[0], 0)
			n.set(s[0], '_') // the flavor follows at once
		} else {
			n.set(s[0], s[1])
		}
	}
	return n
}

func (n *Names) set(a, b byte) {
	h := uint(a)<<8 | uint(b)
	n.filter[h>>6] |= 1 << (h & 63)
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
		if len(s) < 2 {
			continue
		}
		h := uint(s[0])<<8 | uint(s[1])
		if names.filter[h>>6]&(1<<(h&63)) == 0 {
			continue
		}
		if i, ok := names.index[string(Essential(b.Name(n.name)))]; ok {
			out[i] = append(out[i], n.id)
		}
	}
	return out
}
