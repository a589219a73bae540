package corpus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// XZ says which decoder reads .xz. Both give the same bytes.
type XZ int

const (
	XZAuto    XZ = iota // the xz program if it is in PATH, except for small members of containers
	XZProgram           // the xz program; Open fails without it
	XZGo                // the decoder built in
)

// resolve returns the program's path, or "".
func (x XZ) resolve() (string, error) {
	if x == XZGo {
		return "", nil
	}
	path, err := exec.LookPath("xz")
	if err != nil && x == XZProgram {
		return "", errors.New("no xz program in PATH")
	}
	if err != nil {
		return "", nil
	}
	return path, nil
}

// programMin is the compressed size below which starting a process costs more than it saves.
const programMin = 64 << 10

func (r *reader) useProgram(in *input) bool {
	if r.f.xz == "" {
		return false
	}
	return r.f.opts.XZ == XZProgram || in.size < 0 || in.size >= programMin
}

// xzProgram decodes with the xz program. The program reads the file itself where in is one. It ends with
// the context, and with release if that comes before the end of the stream.
func (r *reader) xzProgram(in *input, args ...string) (io.Reader, func(), error) {
	ctx, cancel := context.WithCancel(r.ctx)
	args = append(args, "-T1", "-q", fmt.Sprintf("--memlimit-decompress=%d", maxDict+64<<20))
	p := &xzProcess{cmd: exec.CommandContext(ctx, r.f.xz, args...)}
	p.cmd.Stdin = in.r
	if in.file != nil {
		if _, err := in.file.Seek(0, io.SeekStart); err != nil {
			cancel()
			return nil, nil, err
		}
		p.cmd.Stdin = in.file
	}
	p.cmd.Stderr = &p.stderr
	p.cmd.Env = []string{"LC_ALL=C"}
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		cancel()
		return nil, nil, err
	}
	widenPipe(out)
	p.out = out
	return p, func() {
		cancel()
		p.wait()
	}, nil
}

// xzProcess reads the program's output. Its exit status comes in place of the end.
type xzProcess struct {
	cmd    *exec.Cmd
	out    io.Reader
	stderr tail
	done   bool
	err    error
}

func (p *xzProcess) Read(b []byte) (int, error) {
	if p.done {
		return 0, p.end()
	}
	n, err := p.out.Read(b)
	if err == nil || n > 0 {
		return n, nil
	}
	p.wait()
	if err != io.EOF {
		return 0, err
	}
	return 0, p.end()
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
	msg := strings.TrimSpace(p.stderr.buf.String())
	msg, _, _ = strings.Cut(msg, "\n")
	msg = strings.TrimPrefix(strings.TrimPrefix(msg, p.cmd.Path+": "), "xz: ")
	msg = strings.TrimPrefix(msg, "(stdin): ")
	if msg == "" {
		return p.err
	}
	return errors.New(strings.ToLower(msg[:1]) + msg[1:])
}

// tail keeps the beginning of what is written to it.
type tail struct{ buf bytes.Buffer }

func (t *tail) Write(p []byte) (int, error) {
	if room := 1024 - t.buf.Len(); room > 0 {
		t.buf.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
