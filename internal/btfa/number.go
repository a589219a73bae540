// SPDX-License-Identifier: Apache-2.0

package btfa

// units are what bit offsets are counted in: the largest that divides a
// difference. Which one it is stands in the two lowest bits.
var units = [4]int64{1, 8, 32, 64}

// PackOffset makes a small number of a difference between bit offsets, which
// has at most 36 bits.
func PackOffset(d int64) uint64 {
	if d == 0 {
		return 0
	}
	u := len(units) - 1
	for d%units[u] != 0 {
		u--
	}
	return Zigzag(d/units[u])<<2 | uint64(u)
}

// UnpackOffset is the inverse of PackOffset.
func UnpackOffset(v uint64) int64 { return Unzigzag(v>>2) * units[v&3] }

// Zigzag maps numbers near zero to small ones: 0, -1, 1, -2 to 0, 1, 2, 3.
func Zigzag(d int64) uint64 { return uint64(d)<<1 ^ uint64(d>>63) }

func Unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }
