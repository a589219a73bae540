// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/btfgen/btfgen/internal/corpus/decompress"
	"github.com/btfgen/btfgen/internal/corpus/image"
	"github.com/btfgen/btfgen/internal/corpus/naming"
	"github.com/btfgen/btfgen/internal/corpus/skip"
	"github.com/btfgen/btfgen/internal/corpus/sniff"
	"github.com/btfgen/btfgen/internal/limits"
)

// Reader unwraps compressions and containers, and passes their content to a Taker.
type Reader struct {
	*Reading
	to Taker
}

// NewReader returns a Reader that shares a Reading.
func NewReader(r *Reading, to Taker) *Reader { return &Reader{r, to} }

// Taker takes the content that a Reader finds.
type Taker interface {
	// Wants reports whether to read a member of a container, and which kind of extra it is.
	Wants(member string) (naming.Extra, bool)
	// Take takes content that is neither compressed nor a container.
	Take(in *Stream, k sniff.Kind) error
	// Link takes a link of a tar file, and where it leads in the tar.
	Link(in *Stream, member, to string)
	// Attempt calls read. If read fails, Attempt drops what was taken meanwhile.
	Attempt(read func() error) error
}

var inputs = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, inputBuffer) }}

const inputBuffer = 128 << 10

// open returns a Stream, whose buffer close gives back. in is what the stream was made of.
func (r *Reader) open(stream io.Reader, in Stream) (*Stream, func()) {
	buf := inputs.Get().(*bufio.Reader)
	buf.Reset(stream)
	in.Reader = buf
	in.depth++
	return &in, func() {
		buf.Reset(nil)
		inputs.Put(buf)
	}
}

// File reads one file on disk.
func (r *Reader) File(path string, size int64, extra naming.Extra) {
	file, err := os.Open(path)
	if err != nil {
		r.Fail(skip.Wrap(path, "", err))
		return
	}
	defer file.Close()
	r.Stream(decompress.Until(r.Ctx, file), Stream{Path: path, Member: path, Size: size, File: file, Extra: extra})
}

// Stream reads a stream. in has its path and what else is known.
func (r *Reader) Stream(stream io.Reader, in Stream) {
	opened, done := r.open(stream, in)
	defer done()
	r.Fail(r.content(opened))
}

// content reads a stream of any kind. Errors of members of containers are added to errs; it returns that of the stream itself.
func (r *Reader) content(in *Stream) error {
	if in.depth > limits.Nesting {
		return skip.Wrap(in.Path, "", fmt.Errorf("nested more than %d deep", limits.Nesting))
	}
	head, err := in.Peek(sniff.Len)
	if err != nil && err != io.EOF {
		return skip.Wrap(in.Path, "", err)
	}
	k := sniff.Of(head)
	switch {
	case k == sniff.Compressed:
		return r.compressed(in, decompress.Sniff(head))
	case in.Extra != naming.NoExtra:
		return r.to.Take(in, k)
	case k.Container():
		return r.container(in, k)
	case k == sniff.Unknown || k == sniff.Zero:
		if head, _ := in.Peek(image.S390Len); image.IsS390(bytes.NewReader(head)) {
			k = sniff.Image
		}
	}
	return r.to.Take(in, k)
}

// compressed reads what a compressed stream holds.
func (r *Reader) compressed(in *Stream, f decompress.Format) error {
	what := f.String()
	stream, err := decompress.Open(r.Ctx, in.Reader, in.Size, f, r.XZ)
	if err != nil {
		return skip.Wrap(in.Path, what, err)
	}
	defer stream.Close()
	inner, done := r.open(&placed{r.Counted(stream), in.Path, what}, Stream{
		Path: in.Path, Member: in.Member, Size: -1, depth: in.depth, Inside: in.Inside, Rel: in.Rel, Extra: in.Extra,
	})
	defer done()
	err = r.to.Attempt(func() error {
		if err := r.content(inner); err != nil || r.Stopped() {
			return err
		}
		return drain(inner)
	})
	return skip.Wrap(in.Path, what, err)
}

// drain reads a stream to its end, where checksums are.
func drain(in *Stream) error {
	for {
		if _, err := in.Discard(1 << 16); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// placed adds the path to the errors of a decoder.
type placed struct {
	src        io.Reader
	path, what string
}

func (l *placed) Read(p []byte) (int, error) {
	n, err := l.src.Read(p)
	if err != nil && err != io.EOF {
		err = skip.Wrap(l.path, l.what, err)
	}
	return n, err
}
