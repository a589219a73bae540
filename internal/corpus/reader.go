// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/btfgen/btfgen/internal/corpus/decompress"
	"github.com/btfgen/btfgen/internal/corpus/image"
	"github.com/btfgen/btfgen/internal/corpus/naming"
	"github.com/btfgen/btfgen/internal/corpus/skip"
	"github.com/btfgen/btfgen/internal/corpus/sniff"
	"github.com/btfgen/btfgen/internal/limits"
)

// reader unwraps compressions and containers, and passes their content to a taker.
type reader struct {
	*run
	to taker
}

// taker takes the content that a reader finds: extractor BTF, and booting images.
type taker interface {
	// wants reports whether to read a member of a container, and which kind of extra it is.
	wants(member string) (naming.Extra, bool)
	// take takes content that is neither compressed nor a container.
	take(in *input, k sniff.Kind) error
	// attempt calls read. If read fails, attempt drops what was taken meanwhile.
	attempt(read func() error) error
}

// open returns a stream's input, whose buffer close gives back. in is what the stream was made of.
func (r *reader) open(stream io.Reader, in input) (*input, func()) {
	buf := inputs.Get().(*bufio.Reader)
	buf.Reset(stream)
	in.r = buf
	in.depth++
	return &in, func() {
		buf.Reset(nil)
		inputs.Put(buf)
	}
}

// part reads one file on disk.
func (r *reader) part(p *part, extra naming.Extra) {
	r.current = p
	file, err := os.Open(p.Path)
	if err != nil {
		r.fail(skip.Wrap(p.Path, "", err))
		return
	}
	defer file.Close()
	in, done := r.open(decompress.Until(r.ctx, file), input{path: p.Path, member: p.Path, size: p.Size, file: file, extra: extra})
	defer done()
	r.fail(r.content(in))
}

// content reads a stream of any kind. Errors of members of containers are added to errs; it returns that of the stream itself.
func (r *reader) content(in *input) error {
	if in.depth > limits.Nesting {
		return skip.Wrap(in.path, "", fmt.Errorf("nested more than %d deep", limits.Nesting))
	}
	head, err := in.r.Peek(sniff.Len)
	if err != nil && err != io.EOF {
		return skip.Wrap(in.path, "", err)
	}
	k := sniff.Of(head)
	switch {
	case k == sniff.Compressed:
		return r.compressed(in, decompress.Sniff(head))
	case in.extra != naming.NoExtra:
		return r.to.take(in, k)
	case k.Container():
		return r.container(in, k)
	case k == sniff.Unknown || k == sniff.Zero:
		if head, _ := in.r.Peek(image.S390Len); image.IsS390(bytes.NewReader(head)) {
			k = sniff.Image
		}
	}
	return r.to.take(in, k)
}

// compressed reads what a compressed stream holds.
func (r *reader) compressed(in *input, f decompress.Format) error {
	what := f.String()
	stream, err := decompress.Open(in.r, f)
	if err != nil {
		return skip.Wrap(in.path, what, err)
	}
	defer stream.Close()
	inner, done := r.open(&placed{r.counted(stream), in.path, what}, input{
		path: in.path, member: in.member, size: -1, depth: in.depth, inside: in.inside, rel: in.rel, extra: in.extra,
	})
	defer done()
	err = r.to.attempt(func() error {
		if err := r.content(inner); err != nil || r.stopped() {
			return err
		}
		return drain(inner)
	})
	return skip.Wrap(in.path, what, err)
}

// drain reads a stream to its end, where checksums are.
func drain(in *input) error {
	for {
		if _, err := in.r.Discard(1 << 16); err == io.EOF {
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
