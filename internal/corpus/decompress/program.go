// SPDX-License-Identifier: Apache-2.0

package decompress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/workers/program"
)

// XZProgram reads large .xz with the xz program, if that is installed. A nil one reads none. It is safe for concurrent use.
type XZProgram struct {
	least  int64 // bytes of .xz
	usable func() bool
}

// NewXZProgram returns an XZProgram that looks for the program when the first large .xz is read. Looking for it ends with ctx.
func NewXZProgram(ctx context.Context) *XZProgram {
	return &XZProgram{leastProgram, sync.OnceValue(func() bool {
		out, err := program.Run(ctx, &program.Command{Name: "xz", Options: []string{"--version"}})
		return err == nil && strings.HasPrefix(out, "xz (XZ Utils) ") // BusyBox's has no limit of memory
	})}
}

// leastProgram is the compressed size below which the program saves nothing: .btf.tar.xz are smaller, packages and kernels larger.
const leastProgram = 4 << 20

// takes reports whether the program is to read size bytes, -1 if that is unknown.
func (x *XZProgram) takes(size int64) bool {
	return x != nil && (size < 0 || size >= x.least) && x.usable()
}

// open returns a reader of the decompressed data of all streams in src, or, if all is not set, of the first one.
func (x *XZProgram) open(ctx context.Context, src io.Reader, all bool) (io.ReadCloser, error) {
	var ends [4]*os.File // ends of two pipes
	for i := 0; i < len(ends); i += 2 {
		var err error
		if ends[i], ends[i+1], err = os.Pipe(); err != nil {
			for _, f := range ends[:i] {
				f.Close()
			}
			return nil, err
		}
	}
	stdin, in, out, stdout := ends[0], ends[1], ends[2], ends[3]
	c := &program.Command{
		Name:    "xz",
		Options: []string{"-dcq", "-T1", fmt.Sprintf("--memlimit-decompress=%d", limits.Dictionary+limits.XZMemory)},
		Stdin:   stdin, Stdout: stdout,
	}
	if !all {
		c.Options = append(c.Options, "--single-stream")
	}
	p := &xzProcess{src: src, out: out}
	c.Stderr = &p.said
	ctx, p.cancel = context.WithCancel(ctx)
	started := make(chan error)
	p.running.Go(func() { // Start and Wait must be called by one goroutine
		run, err := program.Start(ctx, c)
		stdin.Close()
		stdout.Close()
		started <- err
		if err == nil {
			p.err = run.Wait()
		}
	})
	err := <-started
	if err != nil {
		in.Close()
		out.Close()
		p.cancel()
		return nil, err
	}
	p.running.Go(func() {
		defer in.Close()
		_, _ = io.Copy(in, (*feed)(p)) // it fails if the program has ended, which says why
	})
	return p, nil
}

// xzProcess is a running xz program, whose output it reads.
type xzProcess struct {
	src     io.Reader
	out     *os.File
	cancel  context.CancelFunc
	running sync.WaitGroup
	said    Head
	failed  error // error of src; valid after running
	err     error // error of the program; valid after running
}

// feed reads the source of a process.
type feed xzProcess

func (f *feed) Read(b []byte) (int, error) {
	n, err := f.src.Read(b)
	if err != io.EOF {
		f.failed = err
	}
	return n, err
}

func (p *xzProcess) Read(b []byte) (int, error) {
	n, err := p.out.Read(b)
	if err != io.EOF {
		return n, err
	}
	p.running.Wait()
	switch {
	case p.failed != nil:
		return n, p.failed
	case p.err != nil:
		return n, p.reason()
	}
	return n, io.EOF
}

// reason returns the error of the program, in its own words if it said something.
func (p *xzProcess) reason() error {
	line, _, _ := strings.Cut(p.said.String(), "\n")
	if _, said, ok := strings.Cut(line, ": (stdin): "); ok && said != "" {
		return errors.New(strings.ToLower(said[:1]) + said[1:])
	}
	if line != "" {
		return errors.New(line)
	}
	return p.err
}

// Close ends the program, and waits until it and the reading of the source have ended.
func (p *xzProcess) Close() error {
	p.cancel()
	p.out.Close()
	p.running.Wait()
	return nil
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
