package corpus

import (
	"bytes"
	"encoding/binary"
)

// kind is what a file's first bytes say it is.
type kind int

const (
	kindUnknown kind = iota
	kindEmpty
	kindZero // what a tar without members is
	kindBTF
	kindELF
	kindXZ
	kindGzip
	kindZstd
	kindBzip2
	kindLZ4
	kindLZMA
	kindTar
	kindAr
	kindRPM
	kindCpio
	kindImage
)

var kindNames = [...]string{
	"unknown", "empty", "zero", "btf", "elf", "xz", "gzip", "zstd", "bzip2", "lz4", "lzma", "tar", "deb",
	"rpm", "cpio", "image",
}

func (k kind) String() string { return kindNames[k] }

// compressed says whether the kind is one byte stream made smaller.
func (k kind) compressed() bool { return kindXZ <= k && k <= kindLZMA }

// container says whether the kind holds files with names.
func (k kind) container() bool { return kindTar <= k && k <= kindCpio }

// sniffLen is how many bytes sniff wants to see; fewer will do if the file has no more.
const sniffLen = 1024

// magics are the kinds that begin with fixed bytes.
var magics = []struct {
	magic string
	kind  kind
}{
	{"\x7fELF", kindELF},
	{"\xfd7zXZ\x00", kindXZ},
	{"\x1f\x8b\x08", kindGzip},
	{"\x28\xb5\x2f\xfd", kindZstd},
	{"BZh", kindBzip2},
	{"\x04\x22\x4d\x18", kindLZ4}, // frame
	{"\x02\x21\x4c\x18", kindLZ4}, // the kernel's legacy frame
	{"!<arch>\n", kindAr},
	{"\xed\xab\xee\xdb", kindRPM},
	{"070701", kindCpio},
	{"070702", kindCpio},
}

// sniff tells what begins with head.
func sniff(head []byte) kind {
	if len(head) == 0 {
		return kindEmpty
	}
	if btfOrder(head) != nil {
		return kindBTF
	}
	for _, m := range magics {
		if bytes.HasPrefix(head, []byte(m.magic)) {
			return m.kind
		}
	}
	switch {
	case sniffImage(head) != imageNone:
		return kindImage
	case len(bytes.Trim(head, "\x00")) == 0:
		return kindZero
	case isTar(head):
		return kindTar
	case isLZMA(head):
		return kindLZMA
	}
	return kindUnknown
}

// btfOrder returns the byte order of a BTF header, or nil if head does not begin with one.
func btfOrder(head []byte) binary.ByteOrder {
	if len(head) < 4 || head[2] != 1 {
		return nil
	}
	switch {
	case head[0] == 0x9f && head[1] == 0xeb:
		return binary.LittleEndian
	case head[0] == 0xeb && head[1] == 0x9f:
		return binary.BigEndian
	}
	return nil
}

// isTar accepts a tar header of any age, by its checksum.
func isTar(head []byte) bool {
	if len(head) < 512 {
		return false
	}
	head = head[:512]
	sum := int64(8 * ' ')
	for i, c := range head {
		if i < 148 || i >= 156 {
			sum += int64(c)
		}
	}
	var want int64
	for _, c := range bytes.Trim(head[148:156], " \x00") {
		if c < '0' || c > '7' {
			return false
		}
		want = want<<3 | int64(c-'0')
	}
	return sum == want
}

// isLZMA recognises the header of a .lzma file, which has no magic: the properties every encoder
// uses, a dictionary of 2^n or 3×2^n bytes, and a plausible or unknown size.
func isLZMA(head []byte) bool {
	if len(head) < 14 || head[0] != 0x5d {
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
