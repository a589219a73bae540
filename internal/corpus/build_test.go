// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"archive/tar"
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/ulikunitz/xz"
	"github.com/ulikunitz/xz/lzma"

	"github.com/btfgen/btfgen/internal/corpus/sniff"
)

// The tests build what they read: small BTF blobs in every kind of file.

// btfBlob returns BTF with one integer type. Its string section begins with the empty string
// unless it is split.
func btfBlob(order binary.ByteOrder, name string, split bool) []byte {
	strs := "\x00" + name + "\x00"
	nameOff := uint32(1)
	if split {
		strs, nameOff = name+"\x00", 1000
	}
	var b bytes.Buffer
	write := func(v any) {
		if err := binary.Write(&b, order, v); err != nil {
			panic(err)
		}
	}
	write(uint16(0xeb9f))
	write([]uint8{1, 0})
	write([]uint32{24, 0, 16, 16, uint32(len(strs))})
	write([]uint32{nameOff, 1 << 24, 4, 32})
	b.WriteString(strs)
	return b.Bytes()
}

var (
	blobLE  = btfBlob(binary.LittleEndian, "int", false)
	blobBE  = btfBlob(binary.BigEndian, "long", false)
	splitLE = btfBlob(binary.LittleEndian, "nf_conn", true)
)

// blobLE as bzip2, which no library here writes.
const blobBzip2 = "QlpoOTFBWSZTWc52Dx8AABTxoX4AQEBAAAAhBAAAAIAIIAAxAAAGmUaPUaaNPGyGGoESRRviGSOmK8r+LuSKcKEhnOwePg=="

type section struct {
	name  string
	flags uint64
	data  []byte
}

// elfFile returns a 64-bit ELF file with the given sections.
func elfFile(order binary.ByteOrder, typ elf.Type, machine elf.Machine, secs ...section) []byte {
	names := "\x00.shstrtab\x00"
	var data []byte
	shdrs := []elf.Section64{{}}
	for _, s := range secs {
		shdrs = append(shdrs, elf.Section64{
			Name: uint32(len(names)), Type: uint32(elf.SHT_PROGBITS), Flags: s.flags,
			Off: uint64(64 + len(data)), Size: uint64(len(s.data)), Addralign: 1,
		})
		names += s.name + "\x00"
		data = append(data, s.data...)
	}
	shdrs = append(shdrs, elf.Section64{
		Name: 1, Type: uint32(elf.SHT_STRTAB), Off: uint64(64 + len(data)), Size: uint64(len(names)), Addralign: 1,
	})
	data = append(data, names...)
	h := elf.Header64{
		Type: uint16(typ), Machine: uint16(machine), Version: 1, Shoff: uint64(64 + len(data)), Ehsize: 64,
		Shentsize: 64, Shnum: uint16(len(shdrs)), Shstrndx: uint16(len(shdrs) - 1),
	}
	ident := elf.ELFDATA2LSB
	if order == binary.BigEndian {
		ident = elf.ELFDATA2MSB
	}
	copy(h.Ident[:], []byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(ident), 1})
	var b bytes.Buffer
	for _, v := range []any{h, data, shdrs} {
		if err := binary.Write(&b, order, v); err != nil {
			panic(err)
		}
	}
	return b.Bytes()
}

// vmlinux returns an ELF kernel with BTF and a banner.
func vmlinux(btf []byte) []byte {
	return elfFile(binary.LittleEndian, elf.ET_EXEC, elf.EM_X86_64,
		section{".rodata", 0, []byte("Linux version 6.1.7-test (someone@somewhere)\x00")}, section{".BTF", 0, btf})
}

// compressedSection returns a section with SHF_COMPRESSED.
func compressedSection(name string, data []byte) section {
	var b bytes.Buffer
	h := elf.Chdr64{Type: uint32(elf.COMPRESS_ZLIB), Size: uint64(len(data)), Addralign: 1}
	if err := binary.Write(&b, binary.LittleEndian, h); err != nil {
		panic(err)
	}
	w := zlib.NewWriter(&b)
	mustWrite(w, data)
	return section{name, uint64(elf.SHF_COMPRESSED), b.Bytes()}
}

func mustWrite(w io.WriteCloser, data []byte) {
	if _, err := w.Write(data); err != nil {
		panic(err)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
}

// must is for constructors of writers.
func must[T any](w T, err error) T {
	if err != nil {
		panic(err)
	}
	return w
}

// compress returns data in one of the compressed formats.
func compress(k string, data []byte) []byte {
	var b bytes.Buffer
	switch k {
	case "xz":
		mustWrite(must(xz.NewWriter(&b)), data)
	case "gz":
		mustWrite(gzip.NewWriter(&b), data)
	case "zst":
		mustWrite(must(zstd.NewWriter(&b)), data)
	case "lz4":
		mustWrite(lz4.NewWriter(&b), data)
	case "lz4legacy":
		w := lz4.NewWriter(&b)
		if err := w.Apply(lz4.LegacyOption(true)); err != nil {
			panic(err)
		}
		mustWrite(w, data)
	case "lzma":
		mustWrite(must(lzma.NewWriter(&b)), data)
	case "bz2":
		if !bytes.Equal(data, blobLE) {
			panic("no bzip2 of that")
		}
		return must(base64.StdEncoding.DecodeString(blobBzip2))
	default:
		panic(k)
	}
	return b.Bytes()
}

type member struct {
	name string
	data []byte
}

// tarOf returns a tar with the members; a name that ends in "/" is a directory.
func tarOf(members ...member) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, m := range members {
		if err := w.WriteHeader(&tar.Header{Name: m.name, Size: int64(len(m.data)), Mode: 0o644}); err != nil {
			panic(err)
		}
		if _, err := w.Write(m.data); err != nil {
			panic(err)
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// debOf returns a Debian package whose data.tar.xz has the members.
func debOf(members ...member) []byte {
	b := []byte("!<arch>\n")
	for _, m := range []member{
		{"debian-binary", []byte("2.0\n")},
		{"control.tar.xz", []byte("odd")},
		{"data.tar.xz", compress("xz", tarOf(members...))},
	} {
		b = fmt.Appendf(b, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", m.name, 0, 0, 0, "100644", len(m.data))
		b = append(b, m.data...)
		if len(m.data)%2 == 1 {
			b = append(b, '\n')
		}
	}
	return b
}

// cpioOf returns a cpio archive in the newc format.
func cpioOf(members ...member) []byte {
	var b []byte
	for _, m := range append(members, member{"TRAILER!!!", nil}) {
		b = fmt.Appendf(b, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X",
			0, 0o100644, 0, 0, 1, 0, len(m.data), 0, 0, 0, 0, len(m.name)+1, 0)
		b = append(b, m.name...)
		b = append(b, 0)
		b = append(b, make([]byte, (4-len(b)%4)%4)...)
		b = append(b, m.data...)
		b = append(b, make([]byte, (4-len(b)%4)%4)...)
	}
	return b
}

// rpmOf returns an RPM package with the members.
func rpmOf(members ...member) []byte {
	b := append([]byte("\xed\xab\xee\xdb\x03\x00"), make([]byte, 90)...)
	header := func(index, store int) {
		b = append(b, "\x8e\xad\xe8\x01\x00\x00\x00\x00"...)
		b = binary.BigEndian.AppendUint32(b, uint32(index))
		b = binary.BigEndian.AppendUint32(b, uint32(store))
		b = append(b, make([]byte, 16*index+store)...)
	}
	header(1, 13)
	b = append(b, make([]byte, (8-len(b)%8)%8)...)
	header(3, 21)
	return append(b, compress("zst", cpioOf(members...))...)
}

// noise is data that does not compress, to make images realistic.
func noise(n int) []byte {
	b, x := make([]byte, n), uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

// bzImage returns an x86 image around a compressed kernel.
func bzImage(payload []byte) []byte {
	const setup, at = 3, 0x40
	b := make([]byte, (setup+1)*512+at, (setup+1)*512+at+len(payload))
	le := binary.LittleEndian
	b[0x1f1] = setup
	copy(b[0x1fe:], "\x55\xaa")
	copy(b[0x202:], "HdrS")
	le.PutUint16(b[0x206:], 0x20f)
	le.PutUint16(b[0x20e:], 0x300)
	copy(b[0x500:], "6.1.7-test (someone@somewhere) #1 SMP\x00")
	le.PutUint32(b[0x248:], at)
	le.PutUint32(b[0x24c:], uint32(len(payload)))
	return append(append(b, payload...), noise(100)...)
}

// withSize appends four bytes, as the kernel's build does with the size of the kernel.
func withSize(b []byte) []byte { return append(b, 0x11, 0x22, 0x33, 0x44) }

// memoryImage returns what a kernel is in memory, with a magic in its header.
func memoryImage(magic string, at int, btf []byte) []byte {
	b := append(noise(5000), "Linux version 6.1.7-test (someone@somewhere)\x00"...)
	copy(b[at:], magic)
	b = append(b, noise(3000)...)
	return append(append(b, btf...), noise(2000)...)
}

func arm64Image(btf []byte) []byte { return memoryImage("ARM\x64", 0x38, btf) }

// zboot returns an EFI zboot image of an arm64 kernel.
func zboot(payload []byte) []byte {
	b := make([]byte, 0x100)
	copy(b, "MZ\x00\x00zimg")
	binary.LittleEndian.PutUint32(b[8:], 0x100)
	binary.LittleEndian.PutUint32(b[12:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(b[0x3c:], 0x40)
	copy(b[0x40:], "PE\x00\x00\x64\xaa")
	return append(append(b, payload...), noise(64)...)
}

// s390Image returns an s390x image around a compressed kernel.
func s390Image(payload []byte) []byte {
	b := make([]byte, 0x11000)
	copy(b[0x10008:], "S390EP")
	return append(append(b, payload...), noise(500)...)
}

// zImage returns a 32-bit arm image.
func zImage(payload []byte) []byte {
	b := noise(4096)
	copy(b[0x24:], "\x18\x28\x6f\x01")
	return append(append(b, payload...), noise(500)...)
}

func TestBuiltBlobsDiffer(t *testing.T) {
	for _, tt := range []struct {
		blob  []byte
		split bool
	}{{blobLE, false}, {blobBE, false}, {splitLE, true}} {
		split, err := sniff.IsSplit(tt.blob)
		if err != nil || split != tt.split {
			t.Errorf("%q: split %v, %v", tt.blob, split, err)
		}
	}
}

// elfFileOf returns a kernel module with the BTF.
func elfFileOf(btf []byte) []byte {
	return elfFile(binary.LittleEndian, elf.ET_REL, elf.EM_X86_64, section{".BTF", 0, btf})
}
