package archive

// units are what bit offsets are counted in: the largest that divides a
// difference. Which one it is stands in the two lowest bits.
var units = [4]int64{1, 8, 32, 64}

// packOffset makes a small number of a difference between bit offsets, which
// has at most 36 bits.
func packOffset(d int64) uint64 {
	if d == 0 {
		return 0
	}
	u := len(units) - 1
	for d%units[u] != 0 {
		u--
	}
	return zigzag(d/units[u])<<2 | uint64(u)
}

// unpackOffset is the inverse of packOffset.
func unpackOffset(v uint64) int64 { return unzigzag(v>>2) * units[v&3] }

// zigzag maps numbers near zero to small ones: 0, -1, 1, -2 to 0, 1, 2, 3.
func zigzag(d int64) uint64 { return uint64(d)<<1 ^ uint64(d>>63) }

func unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }
