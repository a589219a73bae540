// SPDX-License-Identifier: Apache-2.0

// Package sniff identifies files by their first bytes.
package sniff

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/btfgen/btfgen/internal/bpfobj/embedded"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/corpus/decompress"
	"github.com/btfgen/btfgen/internal/corpus/image"
)

// Kind is the kind of a file by its first bytes.
type Kind int

const (
	Unknown Kind = iota
	Empty
	Zero // NUL bytes, which a tar without members consists of
	BTF
	ELF
	Compressed // see decompress.Sniff
	Tar
	Ar
	RPM
	Cpio
	Image
	BTFC // a corpus in one file
)

var kindNames = [...]string{
	"unknown", "empty", "zero", "btf", "elf", "compressed", "tar", "deb", "rpm", "cpio", "image", "btfc",
}

func (k Kind) String() string { return kindNames[k] }

// Container says whether the kind holds files with names.
func (k Kind) Container() bool { return Tar <= k && k <= Cpio }

// Len is the number of bytes that Of needs, if the file has them.
const Len = 1024

// magics are further kinds that begin with fixed bytes.
var magics = []struct {
	magic string
	kind  Kind
}{
	{"\x7fELF", ELF},
	{"!<arch>\n", Ar},
	{"\xed\xab\xee\xdb", RPM},
	{"070701", Cpio},
	{"070702", Cpio},
	{btfc.Magic, BTFC},
}

// Of returns the kind of a file that begins with head.
func Of(head []byte) Kind {
	if len(head) == 0 {
		return Empty
	}
	if len(head) >= 4 && btf.OrderOf(head) != nil && head[2] == btf.Version {
		return BTF
	}
	for _, m := range magics {
		if bytes.HasPrefix(head, []byte(m.magic)) {
			return m.kind
		}
	}
	format := decompress.Sniff(head)
	switch {
	case format != decompress.None && format != decompress.LZMA:
		return Compressed
	case image.Sniff(head) != image.None:
		return Image
	case len(bytes.Trim(head, "\x00")) == 0:
		return Zero
	case isTar(head):
		return Tar
	case format == decompress.LZMA: // the weakest sign
		return Compressed
	}
	return Unknown
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

// ErrEmpty describes files without a byte.
var ErrEmpty = errors.New("empty file")

// ErrZeros describes zero-filled files and archives without members, which look the same.
var ErrZeros = errors.New("empty archive, or zeros")

// errUnknown describes files of no known kind.
var errUnknown = errors.New("not BTF, ELF, an archive or a kernel image")

// ErrMinimized describes archives of minimized BTF.
var ErrMinimized = errors.New("an archive of minimized BTF; name the kernels that it was made from")

// Unrecognized returns errUnknown, with what the file is instead, such as a web server's error page, or ErrMinimized.
func Unrecognized(head []byte) error {
	if bytes.HasPrefix(head, []byte("btfa")) {
		return ErrMinimized
	}
	if o := embedded.Describe(head[:min(len(head), Len)]); o != nil && o.Lost {
		return fmt.Errorf("%w, but %s; %s", errUnknown, o.What, o.Fix)
	}
	return errUnknown
}
