// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/btfgen/btfgen/internal/corpus/decompress"
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
	// failed is the error of the last member, where damage of the archive itself shows first.
	var failed error
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
	name = within(name)
	if r.Names != nil {
		return r.again(in, a, name)
	}
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

// again reads a member once for each of its names in r.Names.
func (r *Reader) again(in *Stream, a io.Reader, member string) error {
	names := r.Names[member]
	if len(names) == 0 {
		return nil
	}
	mem := decompress.NewArena(r.Ctx)
	defer mem.Release()
	data, err := mem.Read(r.Counted(a), -1, r.MaxSize)
	if err != nil {
		return skip.Wrap(in.Path+"!"+clean(member), "", err)
	}
	for _, name := range names {
		inner, done := r.open(r.Counted(bytes.NewReader(data)), Stream{
			Path: in.Path + "!" + clean(name), Member: name, Size: int64(len(data)), depth: in.depth, Inside: true, Rel: in.Rel,
		})
		r.Fail(r.content(inner))
		done()
	}
	return nil
}

// within returns the path of a member below the root of its container.
func within(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }

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
	return r.members(in, &tarReader{tar.NewReader(in.Reader), func(member, to string) {
		if r.Names == nil {
			r.to.Link(in, within(member), within(to))
		}
	}})
}

// tarReader reads a tar file.
type tarReader struct {
	*tar.Reader
	link func(member, to string)
}

func (t *tarReader) next() (string, int64, bool, error) {
	h, err := t.Next()
	if err != nil {
		return "", 0, false, err
	}
	switch h.Typeflag {
	case tar.TypeLink:
		t.link(h.Name, h.Linkname)
	case tar.TypeSymlink:
		to := h.Linkname
		if !path.IsAbs(to) { // otherwise the root is that of the tar, as in the image of a system
			to = path.Join(path.Dir(h.Name), to)
		}
		t.link(h.Name, to)
	}
	return h.Name, h.Size, h.Typeflag == tar.TypeReg, nil
}
