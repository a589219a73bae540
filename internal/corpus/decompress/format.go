// SPDX-License-Identifier: Apache-2.0

package decompress

import (
	"bytes"
	"encoding/binary"
)

// Format is a form of compressed data.
type Format int

// The formats. The zero value is data that is none of them.
const (
	None Format = iota
	XZ
	Gzip
	Zstd
	Bzip2
	LZ4 // frames, or the legacy form that kernels have
	LZMA
)

var formatNames = [...]string{"none", "xz", "gzip", "zstd", "bzip2", "lz4", "lzma"}

// String returns the format's name, as messages have it.
func (f Format) String() string { return formatNames[f] }

// magics are what the formats begin with. LZMA has none.
var magics = []struct {
	magic  string
	format Format
}{
	{"\xfd7zXZ\x00", XZ},
	{"\x1f\x8b\x08", Gzip},
	{"\x28\xb5\x2f\xfd", Zstd},
	{"BZh", Bzip2},
	{"\x04\x22\x4d\x18", LZ4},
	{"\x02\x21\x4c\x18", LZ4},
}

// SniffLen is how many bytes Sniff looks at, at most.
const SniffLen = 14

// Sniff returns the format of data that begins with head. LZMA, which has no magic, is a guess: check for other forms first.
func Sniff(head []byte) Format {
	for _, m := range magics {
		if bytes.HasPrefix(head, []byte(m.magic)) {
			return m.format
		}
	}
	if isLZMA(head) {
		return LZMA
	}
	return None
}

// Next returns where in data the next compressed data of a format with a magic may begin, or -1.
func Next(data []byte) (at int, f Format) {
	at = -1
	for _, m := range magics {
		window := data
		if at >= 0 {
			window = data[:at]
		}
		if i := bytes.Index(window, []byte(m.magic)); i >= 0 {
			at, f = i, m.format
		}
	}
	return at, f
}

// leastLZMA is the smallest size in a header that NextLZMA believes.
const leastLZMA = 1 << 12

// NextLZMA is Next for LZMA. Its header is a weak sign, so look for other formats first.
func NextLZMA(data []byte) (at int, f Format) {
	for {
		i := bytes.IndexByte(data[at:], lzmaProperties)
		if i < 0 {
			return -1, None
		}
		if at += i; isLZMA(data[at:]) && binary.LittleEndian.Uint64(data[at+5:]) >= leastLZMA {
			return at, LZMA
		}
		at++
	}
}

// lzmaProperties is the first byte of every .lzma file: what all encoders use.
const lzmaProperties = 0x5d

// isLZMA recognises the header of a .lzma file: the properties every encoder uses, a dictionary of
// 2^n or 3×2^n bytes, and a plausible or unknown size.
func isLZMA(head []byte) bool {
	if len(head) < SniffLen || head[0] != lzmaProperties {
		return false
	}
	dict := binary.LittleEndian.Uint32(head[1:])
	if dict < 1<<12 || dict > 1<<30 {
		return false
	}
	for dict&1 == 0 {
		dict >>= 1
	}
	size := binary.LittleEndian.Uint64(head[5:])
	return (dict == 1 || dict == 3) && (size == 1<<64-1 || size < 1<<38) && head[13] == 0
}
