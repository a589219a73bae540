// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"unicode/utf8"

	"github.com/btfgen/btfgen/internal/bpfobj/machine"
)

// Other is a kind of file that is often given in place of a BPF object.
type Other struct {
	What string // the file is
	Fix  string // advice; "" for a kernel, which goes with an option
	Lost bool   // the content that was expected is elsewhere, which is as bad for other files
}

// noneError is ErrNone with the kind of the file.
type noneError struct{ *Other }

func (e noneError) Error() string {
	text := ErrNone.Error() + ": it is " + e.What
	if e.Fix != "" {
		text += "; " + e.Fix
	}
	return text
}

func (e noneError) Is(target error) bool { return target == ErrNone }

// IsKernel reports whether an error is that of a kernel, or of a package with one, in place of an object.
func IsKernel(err error) bool {
	var e noneError
	return errors.As(err, &e) && e.Fix == ""
}

const (
	compile    = "compile it, with clang --target=bpf -g -O2 -c"
	uncompress = "decompress it first if it is an object"
	unpack     = "unpack it first"
)

// others lists kinds of files. The first that fits counts.
var others = []struct {
	is func(data []byte) bool
	Other
}{
	{func(data []byte) bool { return len(data) == 0 }, Other{"empty", "build it again", true}},
	{starts("version https://git-lfs.github.com/spec/"), Other{"a Git LFS pointer", "fetch its content, with git lfs pull", true}},
	{starts("<!DOCTYPE html", "<!doctype html", "<html"), Other{"an HTML page", "download the file itself", true}},
	{starts("BC\xc0\xde", "\xde\xc0\x17\x0b"), Other{"LLVM bitcode", "compile without -flto and -emit-llvm, or with llc -march=bpf -filetype=obj", false}},
	{starts("\x1f\x8b"), Other{"compressed with gzip", uncompress, false}},
	{starts("\xfd7zXZ\x00"), Other{"compressed with xz", uncompress, false}},
	{starts("\x28\xb5\x2f\xfd"), Other{"compressed with zstd", uncompress, false}},
	{starts("BZh"), Other{"compressed with bzip2", uncompress, false}},
	{starts("\x04\x22\x4d\x18", "\x02\x21\x4c\x18"), Other{"compressed with lz4", uncompress, false}},
	{starts("PK\x03\x04"), Other{"a zip file", unpack, false}},
	{func(data []byte) bool { return has(data, 257, "ustar") }, Other{"a tar file", unpack, false}},
	{starts("!<arch>\ndebian-binary", "\xed\xab\xee\xdb"), Other{"a package", "", false}},
	{starts("!<arch>\n"), Other{"a library of objects", "unpack it first, with ar x", false}},
	{starts("btfc"), Other{"a file of kernels", "", false}},
	{starts("btfa"), Other{"an archive of minimized BTF", "name the objects that it was made for", false}},
	{starts("\x9f\xeb\x01", "\xeb\x9f\x01"), Other{"a kernel's BTF", "", false}},
	{func(data []byte) bool {
		return has(data, 0x202, "HdrS") || has(data, 0x38, "ARM\x64") || has(data, 4, "zimg")
	}, Other{"a kernel image", "", false}},
	{isVmlinux, Other{"a kernel", "", false}},
	{isModule, Other{"a kernel module", "", false}},
	{isText("#include"), Other{"C source", compile, false}},
	{isText(""), Other{"text", "name the compiled object", false}},
}

// Describe returns the kind of a file by its content, or the beginning of it; nil if it is unknown.
func Describe(data []byte) *Other {
	for i := range others {
		if others[i].is(data) {
			return &others[i].Other
		}
	}
	return describeELF(data)
}

// describeELF describes an ELF file, for another machine.
func describeELF(data []byte) *Other {
	if len(data) < HeadBytes || !bytes.HasPrefix(data, []byte(magic)) {
		return nil
	}
	kind, number := header(data)
	arch := machine.OfELF(number, elf.Class(data[elf.EI_CLASS]), elf.Data(data[elf.EI_DATA]))
	if arch == "" {
		arch = number.String()
	}
	if kind == elf.ET_REL {
		return &Other{"an object for " + arch, "compile it for BPF, with clang --target=bpf -g -O2 -c", false}
	}
	return &Other{"a program for " + arch + " that embeds no ELF file for BPF, as with a light skeleton", "name the object that it was built with", false}
}

// header returns the type and machine of an ELF file. data has at least HeadBytes of it.
func header(data []byte) (elf.Type, elf.Machine) {
	var order binary.ByteOrder = binary.LittleEndian
	if elf.Data(data[elf.EI_DATA]) == elf.ELFDATA2MSB {
		order = binary.BigEndian
	}
	return elf.Type(order.Uint16(data[16:])), elf.Machine(order.Uint16(data[18:]))
}

func has(data []byte, at int, text string) bool {
	return len(data) > at && bytes.HasPrefix(data[at:], []byte(text))
}

func starts(texts ...string) func([]byte) bool {
	return func(data []byte) bool {
		for _, text := range texts {
			if has(data, 0, text) {
				return true
			}
		}
		return false
	}
}

// isVmlinux looks for the kernel's banner and the name of its section of types, which ends with a zero in ELF files only.
func isVmlinux(data []byte) bool {
	i := bytes.Index(data, []byte("Linux version "))
	return has(data, 0, magic) && i >= 0 && i+14 < len(data) && '0' <= data[i+14] && data[i+14] <= '9' && bytes.Contains(data, []byte(".BTF\x00"))
}

// isModule looks for what every module has in .modinfo.
func isModule(data []byte) bool {
	return has(data, 0, magic) && bytes.Contains(data, []byte("\x00vermagic="))
}

// isText returns a function that reports whether data begins as text, with a word in it.
func isText(word string) func([]byte) bool {
	return func(data []byte) bool {
		n := min(len(data), 512)
		for n > 0 && n < len(data) && !utf8.RuneStart(data[n]) { // inside a character
			n--
		}
		head := data[:n]
		return utf8.Valid(head) && bytes.IndexByte(head, 0) < 0 && bytes.Contains(head, []byte(word))
	}
}
