// SPDX-License-Identifier: Apache-2.0

package decompress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"github.com/btfgen/btfgen/internal/limits"
)

// Method says what is to read .xz. Both decoders give the same bytes.
type Method int

// The methods.
const (
	Auto    Method = iota // the xz program if it is in PATH, except for small members of containers
	Program               // the xz program; Find fails without it
	BuiltIn               // the decoder in Go
)

// Decoder is what reads .xz. The zero value is the decoder in Go.
type Decoder struct {
	path   string // of the xz program, or empty
	always bool   // for small inputs, too
}

// Find returns the decoder that a method asks for.
func (m Method) Find() (Decoder, error) {
	if m == BuiltIn {
		return Decoder{}, nil
	}
	path, err := exec.LookPath("xz")
	if err != nil && m == Program {
		return Decoder{}, errors.New("no xz program in PATH")
	}
	if err != nil {
		return Decoder{}, nil
	}
	return Decoder{path, m == Program}, nil
}

// programMin is the compressed size below which starting a process costs more than it saves.
const programMin = 64 << 10

// takes says whether the program is to read a stream of size bytes, or of an unknown number if that
// is negative.
func (d Decoder) takes(size int64) bool {
	return d.path != "" && (d.always || size < 0 || size >= programMin)
}

// xzProgram decodes with the xz program. The program reads the file itself where in is one. It ends with
// the context, and when the reader is closed if that comes before the end of the stream.
func (s *Scratch) xzProgram(ctx context.Context, in Input, all bool) (io.ReadCloser, error) {
	p := &xzProcess{s: s, ctx: ctx, in: in, cancel: func() {}}
	p.args = []string{"-dc", "-T1", "-q", fmt.Sprintf("--memlimit-decompress=%d", limits.Dictionary+limits.XZProgram)}
	if !all {
		p.args = append(p.args, "--single-stream")
	}
	err := errors.ErrUnsupported
	if in.File != nil && in.Size <= smallXZ {
		err = p.toMemory()
	}
	if errors.Is(err, errors.ErrUnsupported) {
		p.cancel()
		err = p.toPipe()
	}
	if err != nil {
		p.cancel()
		return nil, err
	}
	return p, nil
}

// xzProcess reads the program's output. Its exit status comes in place of the end.
type xzProcess struct {
	s      *Scratch
	ctx    context.Context
	in     Input
	args   []string
	cmd    *exec.Cmd
	cancel context.CancelFunc
	out    io.Reader
	stderr Head
	done   bool
	err    error
}

// prepare makes the command.
func (p *xzProcess) prepare(args ...string) error {
	var ctx context.Context
	ctx, p.cancel = context.WithCancel(p.ctx)
	p.cmd = exec.CommandContext(ctx, p.in.XZ.path, append(p.args, args...)...)
	p.cmd.Env = []string{"LC_ALL=C"}
	p.stderr, p.done, p.err = Head{}, false, nil
	p.cmd.Stderr = &p.stderr
	if p.in.File == nil {
		p.cmd.Stdin = p.in.R
		return nil
	}
	p.cmd.Stdin = p.in.File
	_, err := p.in.File.Seek(0, io.SeekStart)
	return err
}

// toPipe starts the program with its output to a pipe.
func (p *xzProcess) toPipe() error {
	err := p.prepare()
	if err != nil {
		return err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	p.out = out
	err = p.cmd.Start()
	widenPipe(out)
	return err
}

// Files of up to smallXZ bytes are decompressed to a file in memory, which cannot grow beyond xzMemory
// bytes. Through a pipe, which the program fills in pieces of 8 kB, reader and program take turns on the
// CPU all the time, which costs a tenth of the decompression. Trees of BTF have files of 1 to 4 MB, from
// which 4 to 27 MB come.
const (
	smallXZ  = 4 << 20
	xzMemory = 64 << 20
)

// toMemory runs the program with its output to memory. Where that cannot be it returns
// errors.ErrUnsupported.
func (p *xzProcess) toMemory() error {
	s := p.s
	if s.xzMemory == nil {
		f, err := memoryFile("xz", xzMemory)
		if err != nil {
			return errors.ErrUnsupported
		}
		s.xzMemory = f
	}
	if _, err := s.xzMemory.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := p.prepare("--no-sparse"); err != nil { // there are earlier bytes where it would leave holes
		return err
	}
	p.cmd.Stdout = s.xzMemory
	p.done, p.err = true, p.cmd.Run()
	n, err := s.xzMemory.Seek(0, io.SeekCurrent) // the program shares the offset
	if err != nil {
		return err
	}
	s.xzUsed = max(s.xzUsed, n)
	if p.err != nil && n > xzMemory-1<<20 { // what comes next did not fit
		return errors.ErrUnsupported
	}
	p.out = io.NewSectionReader(s.xzMemory, 0, n)
	return nil
}

func (p *xzProcess) Read(b []byte) (int, error) {
	if p.out == nil {
		return 0, p.end()
	}
	n, err := p.out.Read(b)
	if err == nil || n > 0 {
		return n, nil
	}
	p.out = nil
	p.wait()
	if err != io.EOF {
		return 0, err
	}
	return 0, p.end()
}

func (p *xzProcess) Close() error {
	p.cancel()
	p.wait()
	return nil
}

func (p *xzProcess) wait() {
	if p.done {
		return
	}
	p.done, p.err = true, p.cmd.Wait()
}

func (p *xzProcess) end() error {
	if p.err == nil {
		return io.EOF
	}
	msg := strings.TrimSpace(p.stderr.String())
	msg, _, _ = strings.Cut(msg, "\n")
	msg = strings.TrimPrefix(strings.TrimPrefix(msg, p.cmd.Path+": "), "xz: ")
	msg = strings.TrimPrefix(msg, "(stdin): ")
	if msg == "" {
		return p.err
	}
	return errors.New(strings.ToLower(msg[:1]) + msg[1:])
}

// Head keeps the beginning of what is written to it, such as the messages of a program.
type Head struct{ buf bytes.Buffer }

func (h *Head) Write(p []byte) (int, error) {
	if room := 1024 - h.buf.Len(); room > 0 {
		h.buf.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// String returns what is kept.
func (h *Head) String() string { return h.buf.String() }
