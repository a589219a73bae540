package corpus

import (
	"bytes"
	"io"
)

type imageType int

const (
	imageNone imageType = iota
	imageBzImage
	imageZboot // EFI zboot: a PE file around a compressed Image
	imageRaw   // arm64 and riscv64 Image, uncompressed
	imageZImage
	imageS390
)

func sniffImage(head []byte) imageType {
	at := func(off int, magic string) bool {
		return len(head) >= off+len(magic) && string(head[off:off+len(magic)]) == magic
	}
	switch {
	case at(0x202, "HdrS") && at(0x1fe, "\x55\xaa"):
		return imageBzImage
	case at(0, "MZ") && at(4, "zimg"):
		return imageZboot
	case at(0x38, "ARM\x64"), at(0x38, "RSC\x05"), at(0x30, "RISCV\x00"):
		return imageRaw
	case at(0x24, "\x18\x28\x6f\x01"):
		return imageZImage
	}
	return imageNone
}

// s390Magic is what an s390x image has at s390At.
const (
	s390Magic = "S390EP"
	s390At    = 0x10008
)

func isS390(r io.ReaderAt) bool {
	var b [len(s390Magic)]byte
	n, _ := r.ReadAt(b[:], s390At)
	return string(b[:n]) == s390Magic
}

func isS390Head(r interface{ Peek(int) ([]byte, error) }) bool {
	b, _ := r.Peek(s390At + len(s390Magic))
	return len(b) > s390At && bytes.Equal(b[s390At:], []byte(s390Magic))
}

func (r *reader) image(in *input) error { return wrap(in.path, "", io.ErrUnexpectedEOF) }
func (r *reader) deb(in *input) error   { return io.ErrUnexpectedEOF }
func (r *reader) rpm(in *input) error   { return io.ErrUnexpectedEOF }
func (r *reader) cpio(in *input) error  { return io.ErrUnexpectedEOF }
