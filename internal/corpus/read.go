// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/btfgen/btfgen/internal/bpfobj/embedded"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/corpus/decompress"
	"github.com/btfgen/btfgen/internal/limits"
)

// reader is one File.Read. It unwraps compressions and containers, and collects BTF in s.pending until a kernel is complete.
type reader struct {
	ctx   context.Context
	f     *File
	s     *scratch
	yield func(*Kernel) error
	first func(btf []byte) // takes the first kernel's BTF and ends reading, if it is set
	boot  *booting         // takes images rather than BTF, if it is set

	budget  *decompress.Budget
	current *part

	errs    []error
	abort   error // of yield
	seen    int   // BTF blobs and unwanted modules
	found   int   // kernels, yielded or not selected
	flushes int
	split   int64 // bytes of pending modules
	full    bool  // no more modules fit
	sized   bool  // SourceSize has been given out

	spilled *os.File // modules with DWARF that wait for their kernel, one behind the other; nil if there are none
	end     int64    // of spilled
}

func (r *reader) stopped() bool { return r.abort != nil || r.ctx.Err() != nil }

// fail adds the error of a part of the file.
func (r *reader) fail(err error) {
	if err == nil || r.stopped() {
		return
	}
	r.errs = appendError(r.errs, r.f.Path, err)
}

// input is a stream to be identified and read.
type input struct {
	r      *bufio.Reader
	path   string // with "!member", for messages
	member string // path of the innermost container's member, else the file's path
	size   int64  // bytes, or -1
	depth  int
	inside bool     // a container, where other files are no error
	image  bool     // the kernel of an image
	file   *os.File // the file, if nothing is between it and r
	rel    string   // release, if something around the stream told it
	extra  extraKind
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
func (r *reader) part(p *part) {
	r.current = p
	file, err := os.Open(p.path)
	if err != nil {
		r.fail(wrap(p.path, "", err))
		return
	}
	defer file.Close()
	if p.extra != noExtra {
		if r.boot != nil && p.extra != extraConfig {
			return
		}
		in, done := r.open(ctxReader{r.ctx, file}, input{path: p.path, member: p.path, size: p.size, file: file, extra: p.extra})
		defer done()
		r.fail(r.content(in))
		return
	}
	if data := r.mapped(p, file); data != nil && r.boot == nil {
		r.fail(r.add(&input{path: p.path, member: p.path}, blob{mapped: data}, "", ""))
		return
	}
	in, done := r.open(ctxReader{r.ctx, file}, input{path: p.path, member: p.path, size: p.size, file: file})
	defer done()
	seen, extras, errs := r.seen, len(r.s.extras), len(r.errs)
	r.fail(r.content(in))
	if p.mods && len(r.s.extras) > extras {
		return
	}
	if r.boot == nil && r.seen == seen && len(r.errs) == errs {
		r.fail(wrap(p.path, "", errors.New("holds no BTF")))
	}
}

// content reads a stream of any kind. Errors of members of containers are added to errs; it returns that of the stream itself.
func (r *reader) content(in *input) error {
	if in.depth > limits.Nesting {
		return wrap(in.path, "", fmt.Errorf("nested more than %d deep", limits.Nesting))
	}
	head, err := in.r.Peek(sniffLen)
	if err != nil && err != io.EOF {
		return wrap(in.path, "", err)
	}
	k := sniff(head)
	if in.extra != noExtra && k != kindCompressed && r.boot == nil {
		return r.extra(in)
	}
	if k == kindUnknown || k == kindZero {
		if head, _ := in.r.Peek(s390At + len(s390Magic)); isS390(bytes.NewReader(head)) {
			k = kindImage
		}
	}
	switch {
	case r.boot != nil && k != kindCompressed && !k.container():
		return r.boot.take(r, in, k)
	case k == kindEmpty:
		return r.empty(in, errEmpty)
	case k == kindZero:
		return r.empty(in, errZeros)
	case k == kindBTF:
		return r.raw(in)
	case k == kindELF:
		return r.elf(in)
	case k == kindImage:
		return r.image(in)
	case k == kindCompressed:
		return r.compressed(in, decompress.Sniff(head))
	case k == kindUnknown && !in.inside:
		return r.image(in) // the last chance
	case k.container():
		return r.container(in, k)
	}
	return nil
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

// empty returns err if BTF is expected.
func (r *reader) empty(in *input, err error) error {
	if in.inside && !strings.Contains(in.member, ".btf") {
		return nil
	}
	return wrap(in.path, "", err)
}

// raw reads a BTF blob.
func (r *reader) raw(in *input) error {
	off, size := len(r.s.btf.B), in.size
	if size < 0 { // only the header says how long it is likely to be
		head, _ := in.r.Peek(sniffLen)
		if h, err := btf.ReadHeader(head, r.f.opts.MaxSize); err == nil {
			size = min(int64(h.End()), r.f.opts.MaxSize)
		}
	}
	n, err := r.s.btf.Append(in.r, size, r.f.opts.MaxSize)
	if err != nil {
		return wrap(in.path, "btf", err)
	}
	return r.add(in, blob{off: off, n: n}, "", "")
}

// compressed reads what a compressed stream holds.
func (r *reader) compressed(in *input, f decompress.Format) error {
	what := f.String()
	stream, err := decompress.Open(in.r, f)
	if err != nil {
		return wrap(in.path, what, err)
	}
	defer stream.Close()
	inner, done := r.open(&placed{r.counted(stream), in.path, what}, input{
		path: in.path, member: in.member, size: -1, depth: in.depth, inside: in.inside, rel: in.rel, extra: in.extra,
	})
	defer done()
	mark := r.mark()
	err = r.content(inner)
	if err == nil && r.abort != errFirst {
		err = r.drain(inner)
	}
	if err != nil {
		r.forget(mark)
		return wrap(in.path, what, err)
	}
	return nil
}

// drain reads a stream to its end, where checksums are.
func (r *reader) drain(in *input) error {
	for {
		if _, err := in.r.Discard(1 << 16); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// counted returns a reader of src that takes its bytes from the file's budget, and ends with the context. It is used where more bytes
// can come out than go in: decoders, compressed sections, and members of a tar file, which may have holes.
func (r *reader) counted(src io.Reader) io.Reader { return decompress.Metered(r.ctx, src, r.budget) }

// placed adds the path to the errors of a decoder.
type placed struct {
	src        io.Reader
	path, what string
}

func (l *placed) Read(p []byte) (int, error) {
	n, err := l.src.Read(p)
	if err != nil && err != io.EOF {
		err = wrap(l.path, l.what, err)
	}
	return n, err
}
