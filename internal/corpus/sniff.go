// SPDX-License-Identifier: Apache-2.0

package corpus

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

// kind is the kind of a file by its first bytes.
type kind int

const (
	kindUnknown kind = iota
	kindEmpty
	kindZero // what a tar without members is
	kindBTF
	kindELF
	kindCompressed // see decompress.Sniff
	kindTar
	kindAr
	kindRPM
	kindCpio
	kindImage
	kindBTFC // a corpus in one file
)

var kindNames = [...]string{
	"unknown", "empty", "zero", "btf", "elf", "compressed", "tar", "deb", "rpm", "cpio", "image", "btfc",
}

func (k kind) String() string { return kindNames[k] }

// container says whether the kind holds files with names.
func (k kind) container() bool { return kindTar <= k && k <= kindCpio }

// sniffLen is the number of bytes that sniff needs, if the file has them.
const sniffLen = 1024

// magics are further kinds that begin with fixed bytes.
var magics = []struct {
	magic string
	kind  kind
}{
	{"\x7fELF", kindELF},
	{"!<arch>\n", kindAr},
	{"\xed\xab\xee\xdb", kindRPM},
	{"070701", kindCpio},
	{"070702", kindCpio},
	{btfc.Magic, kindBTFC},
}

// sniff returns the kind of a file that begins with head.
func sniff(head []byte) kind {
	if len(head) == 0 {
		return kindEmpty
	}
	if len(head) >= 4 && btf.OrderOf(head) != nil && head[2] == btf.Version {
		return kindBTF
	}
	for _, m := range magics {
		if bytes.HasPrefix(head, []byte(m.magic)) {
			return m.kind
		}
	}
	format := decompress.Sniff(head)
	switch {
	case format != decompress.None && format != decompress.LZMA:
		return kindCompressed
	case image.Sniff(head) != image.None:
		return kindImage
	case len(bytes.Trim(head, "\x00")) == 0:
		return kindZero
	case isTar(head):
		return kindTar
	case format == decompress.LZMA: // the weakest sign
		return kindCompressed
	}
	return kindUnknown
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

// errEmpty describes files without a byte.
var errEmpty = errors.New("empty file")

// errZeros describes zero-filled files and archives without members, which look the same.
var errZeros = errors.New("empty archive, or zeros")

// errUnknown describes files of no known kind.
var errUnknown = errors.New("not BTF, ELF, an archive or a kernel image")

// unknown returns errUnknown, with what the file is instead, such as a web server's error page.
func unknown(head []byte) error {
	if o := embedded.Describe(head[:min(len(head), sniffLen)]); o != nil && o.Lost {
		return fmt.Errorf("%w, but %s; %s", errUnknown, o.What, o.Fix)
	}
	return errUnknown
}
