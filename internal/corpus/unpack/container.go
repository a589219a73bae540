// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/btfgen/btfgen/internal/corpus/skip"
	"github.com/btfgen/btfgen/internal/corpus/sniff"
)

// container reads the members of an archive or a package. A member that fails is noted and the
// next one read; if the stream itself breaks off, its last kernel is dropped.
func (r *Reader) container(in *Stream, k sniff.Kind) error {
	return skip.Wrap(in.Path, k.String(), r.to.Attempt(func() error {
		switch k {
		case sniff.Tar:
			return r.tar(in)
		case sniff.Ar:
			return r.deb(in)
		case sniff.RPM:
			return r.rpm(in)
		}
		return r.cpio(in)
	}))
}

// nested is an archive's reader: it goes to the next member and then reads that.
type nested interface {
	next() (name string, size int64, regular bool, err error)
	io.Reader
}

// members reads what an archive holds. It returns the archive's own error.
func (r *Reader) members(in *Stream, a nested) error {
	var failed error // of the last member; what breaks the archive itself is met there first
	for n := 0; !r.Stopped(); n++ {
		name, size, regular, err := a.next()
		switch {
		case err == io.EOF && n == 0:
			return errors.New("empty archive")
		case err == io.EOF:
			r.Fail(failed)
			return nil
		case err != nil && failed != nil:
			return failed
		case err != nil:
			return err
		}
		r.Fail(failed)
		failed = nil
		if regular {
			failed = r.member(in, a, name, size)
		}
	}
	return nil
}

// member reads one member.
func (r *Reader) member(in *Stream, a io.Reader, name string, size int64) error {
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	extra, ok := r.to.Wants(name)
	if !ok {
		return nil
	}
	inner, done := r.open(r.Counted(a), Stream{
		Path: in.Path + "!" + clean(name), Member: name, Size: size, depth: in.depth, Inside: true, Rel: in.Rel, Extra: extra,
	})
	defer done()
	return r.content(inner)
}

// clean makes a member's name fit for a message of one line.
func clean(name string) string {
	if len(name) > 256 {
		name = name[:256] + "…"
	}
	if q := fmt.Sprintf("%q", name); q[1:len(q)-1] != name {
		return q
	}
	return name
}

func (r *Reader) tar(in *Stream) error {
	return r.members(in, &tarReader{Reader: tar.NewReader(in.Reader)})
}

// tarReader reads a tar file. Hard links to BTF cannot be read.
type tarReader struct {
	*tar.Reader
	link string // what the member is a hard link to, or ""
}

func (t *tarReader) next() (string, int64, bool, error) {
	h, err := t.Next()
	if err != nil {
		return "", 0, false, err
	}
	t.link = ""
	if h.Typeflag == tar.TypeLink {
		t.link = h.Linkname
	}
	return h.Name, h.Size, h.Typeflag == tar.TypeReg || h.Typeflag == tar.TypeLink && strings.Contains(h.Name, ".btf"), nil
}

func (t *tarReader) Read(p []byte) (int, error) {
	if t.link != "" {
		return 0, fmt.Errorf("hard link to %s, which is not followed: unpack the tar with tar and name the directory instead", clean(t.link))
	}
	return t.Reader.Read(p)
}
