// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// deb reads a Debian package: an ar archive whose member data.tar.* holds the files.
func (r *Reader) deb(in *Stream) error {
	if _, err := in.Discard(len("!<arch>\n")); err != nil {
		return err
	}
	for !r.Stopped() {
		name, size, err := arNext(in.Reader)
		if err == io.EOF {
			return errors.New("no data.tar member")
		}
		if err != nil {
			return err
		}
		if strings.HasPrefix(name, "data.tar") {
			inner, done := r.open(io.LimitReader(in.Reader, size), Stream{
				Path: in.Path, Member: in.Member, Size: size, depth: in.depth, Rel: in.Rel,
			})
			defer done()
			return r.content(inner)
		}
		if _, err := io.CopyN(io.Discard, in.Reader, size+size&1); err != nil {
			return unexpected(err)
		}
	}
	return nil
}

// arNext reads a member's header. ar is simple enough to need no library, and libraries trust the
// size in it.
func arNext(src io.Reader) (name string, size int64, err error) {
	var h [60]byte
	if _, err := io.ReadFull(src, h[:]); err != nil {
		return "", 0, err // io.EOF at the end
	}
	size, err = strconv.ParseInt(strings.TrimRight(string(h[48:58]), " "), 10, 64)
	if err != nil || size < 0 || string(h[58:]) != "`\n" {
		return "", 0, errors.New("bad ar member header")
	}
	return strings.TrimRight(string(h[:16]), " /"), size, nil
}

// rpm reads an RPM package: a lead and two headers, which are skipped, and a compressed cpio archive.
func (r *Reader) rpm(in *Stream) error {
	if _, err := in.Discard(96); err != nil {
		return unexpected(err)
	}
	for _, align := range []int64{8, 1} { // the signature's header is padded, the main one is not
		n, err := rpmHeader(in.Reader)
		if err != nil {
			return err
		}
		if _, err := io.CopyN(io.Discard, in.Reader, (n+align-1)/align*align); err != nil {
			return unexpected(err)
		}
	}
	inner, done := r.open(in.Reader, Stream{
		Path: in.Path, Member: in.Member, Size: -1, depth: in.depth, Rel: in.Rel,
	})
	defer done()
	return r.content(inner)
}

// rpmHeader reads the beginning of a header and returns the length of the rest.
func rpmHeader(src io.Reader) (int64, error) {
	var h [16]byte
	if _, err := io.ReadFull(src, h[:]); err != nil {
		return 0, unexpected(err)
	}
	if !bytes.HasPrefix(h[:], []byte("\x8e\xad\xe8\x01")) {
		return 0, errors.New("bad header")
	}
	return 16*int64(binary.BigEndian.Uint32(h[8:])) + int64(binary.BigEndian.Uint32(h[12:])), nil
}

func (r *Reader) cpio(in *Stream) error { return r.members(in, &cpioReader{src: in.Reader}) }

// cpioReader reads the newc format, as RPM has it. The known library panics on negative sizes.
type cpioReader struct {
	src  io.Reader
	left int64 // bytes of the member that are still to be read
	pad  int64
}

func (c *cpioReader) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, io.EOF
	}
	n, err := c.src.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	if c.left > 0 {
		err = unexpected(err)
	}
	return n, err
}

func (c *cpioReader) next() (name string, size int64, regular bool, err error) {
	if _, err := io.CopyN(io.Discard, c.src, c.left+c.pad); err != nil {
		return "", 0, false, unexpected(err)
	}
	c.left, c.pad = 0, 0
	var h [110]byte
	if _, err := io.ReadFull(c.src, h[:]); err != nil {
		return "", 0, false, unexpected(err)
	}
	var f [13]int64
	for i := range f {
		v, err := strconv.ParseUint(string(h[6+8*i:14+8*i]), 16, 32)
		if err != nil || string(h[:5]) != "07070" {
			return "", 0, false, errors.New("bad member header")
		}
		f[i] = int64(v)
	}
	const mode, fileSize, nameSize = 1, 6, 11
	n := f[nameSize]
	if n < 1 || n > 4096 {
		return "", 0, false, fmt.Errorf("member name of %d bytes", n)
	}
	b := make([]byte, n+(4-(110+n)%4)%4)
	if _, err := io.ReadFull(c.src, b); err != nil {
		return "", 0, false, unexpected(err)
	}
	if name = string(b[:n-1]); name == "TRAILER!!!" {
		return "", 0, false, io.EOF
	}
	c.left, c.pad = f[fileSize], (4-f[fileSize]%4)%4
	return name, c.left, f[mode]&0o170000 == 0o100000, nil
}

// unexpected makes the end of a stream an error.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
