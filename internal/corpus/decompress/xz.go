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

// Decoder is what reads .xz. All decoders give the same bytes. The zero value is the decoder in Go.
type Decoder struct {
	Program string // path of the xz program, or empty
	Always  bool   // use it for small members of containers, too
}

// FindXZ returns the xz program if it is in PATH, and otherwise the decoder in Go.
func FindXZ() Decoder {
	path, err := exec.LookPath("xz")
	if err != nil {
		return Decoder{}
	}
	return Decoder{Program: path}
}

// programMin is the compressed size below which starting a process costs more than it saves.
const programMin = 64 << 10

// takes reports whether the program reads a stream of size bytes, which is negative if unknown.
func (d Decoder) takes(size int64) bool {
	return d.Program != "" && (d.Always || size < 0 || size >= programMin)
}

// xzProgram decodes with the xz program, which reads the file itself if there is one. The process ends with the context, or when the
// reader is closed.
func xzProgram(ctx context.Context, in Input, all bool) (io.ReadCloser, error) {
	args := []string{"-dc", "-T1", "-q", fmt.Sprintf("--memlimit-decompress=%d", limits.Dictionary+limits.XZProgram)}
	if !all {
		args = append(args, "--single-stream")
	}
	ctx, cancel := context.WithCancel(ctx)
	p := &xzProcess{cmd: exec.CommandContext(ctx, in.XZ.Program, args...), cancel: cancel}
	p.cmd.Env = []string{"LC_ALL=C"}
	p.cmd.Stdin, p.cmd.Stderr = in.R, &p.stderr
	var err error
	if in.File != nil {
		p.cmd.Stdin = in.File
		_, err = in.File.Seek(0, io.SeekStart)
	}
	if err == nil {
		p.out, err = p.cmd.StdoutPipe()
	}
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	widenPipe(p.out)
	return p, nil
}

// xzProcess reads the program's output. At its end it returns an error if the program has failed.
type xzProcess struct {
	cmd    *exec.Cmd
	cancel context.CancelFunc
	out    io.Reader // nil at the end
	stderr Head
	done   bool
	err    error
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

// Head keeps the first kilobyte that is written to it, such as the messages of a program.
type Head struct{ buf bytes.Buffer }

func (h *Head) Write(p []byte) (int, error) {
	if room := 1024 - h.buf.Len(); room > 0 {
		h.buf.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

func (h *Head) String() string { return h.buf.String() }
