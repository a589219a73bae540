// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/btfgen/btfgen/internal/testing/slow"
)

// endless is a command line that does not end soon: it reads from a silent pipe, or many kernels. @pipe, @kernels, @archive
// and @object are replaced by inputs, @out by a directory.
var endless = []string{
	"generate --btf @kernels -o @out/x.btfa @object",
	"generate --btf @kernels -o @out/x @pipe",
	"generate --btf @kernels --reuse @pipe -o @out/x.btfa @object",
	"min_core_btf @kernels/debian/0/x86_64/6.1.0-47-amd64.btf.zst @out/x.btf @object @pipe",
	"relolog --btf @kernels @object",
	"relolog --json --btf @kernels @pipe",
	"verify --btf @kernels @archive @object",
	"verify --btf @kernels @pipe @object",
	"check --btf @kernels -o @out/x.json --json @object",
	"check --btf @kernels --baseline @pipe @object",
	"archive list @pipe",
	"archive lookup --release 1 --arch x86_64 @pipe",
	"archive convert -o @out/x @pipe",
	"archive convert -o @out/x.tar.gz @archive @pipe",
	"corpus list --long @kernels",
	"corpus lint @kernels",
	"corpus import -o @out/x.btfc @kernels",
	"corpus extract -o @out/x @kernels",
}

// INT, TERM and HUP end every command, with their own status, and leave no temporary files.
func TestSignals(t *testing.T) {
	slow.Skip(t)
	v := newVictim(t)
	v.make(t, "../../testdata/bpf/tcplife.bpfel.o")
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	kernels := manyKernels(t)
	for i, line := range endless {
		t.Run(line, func(t *testing.T) {
			s := []struct {
				signal  syscall.Signal
				status  int
				message string
			}{
				{syscall.SIGINT, 130, "btfgen: interrupted\n"},
				{syscall.SIGTERM, 143, "btfgen: terminated\n"},
				{syscall.SIGHUP, 129, "btfgen: hung up\n"},
			}[i%3]
			if signal.Ignored(s.signal) { // children inherit this, as under nohup
				s.signal, s.status, s.message = syscall.SIGTERM, 143, "btfgen: terminated\n"
			}
			out := filepath.Join(dir, fmt.Sprint(i))
			if err := os.Mkdir(out, 0o777); err != nil {
				t.Fatal(err)
			}
			args := strings.NewReplacer("@pipe", pipe, "@kernels", kernels, "@archive", v.out(), "@out", out,
				"@object", "../../testdata/bpf/tcplife.bpfel.o").Replace(line)
			p := watch(t, exec.Command(v.path, strings.Fields(args)...))
			open := begins(p, pipe, kernels)
			if open == nil {
				t.Fatalf("ended by itself: %s", p)
			}
			// Each command gets the signal at another moment of its run.
			time.Sleep(time.Duration(i*7%100) * time.Millisecond)
			if err := p.Process.Signal(s.signal); err != nil {
				t.Errorf("%v: %s", err, p)
			}
			p.end()
			open.Close()
			if got := p.ProcessState.ExitCode(); got != s.status || !strings.HasSuffix(p.String(), s.message) {
				t.Errorf("%v: exit status %d, want %d: %s", s.signal, got, s.status, p)
			}
			if left := temporaries(t, out); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

// begins waits until a process has a pipe or a file below a directory open, and so listens to signals. It returns the open
// pipe, or nil if the process ends before.
func begins(p *watched, pipe, dir string) *os.File {
	fds := fmt.Sprintf("/proc/%d/fd", p.Process.Pid)
	for {
		select {
		case <-p.ended:
			return nil
		case <-time.After(time.Millisecond):
		}
		// Opening a pipe for writing fails until it has a reader.
		if f, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			return f
		}
		open, _ := os.ReadDir(fds)
		for _, fd := range open {
			if to, err := os.Readlink(filepath.Join(fds, fd.Name())); err == nil && strings.HasPrefix(to, dir) {
				f, err := os.Open(os.DevNull)
				if err != nil {
					panic(err)
				}
				return f
			}
		}
	}
}

// temporaries lists temporary files below a directory.
func temporaries(t *testing.T, dir string) (left []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if strings.HasPrefix(d.Name(), ".") {
			left = append(left, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(left)
	return left
}

// A second signal ends the program at once. An ignored signal does nothing, as nohup and background jobs require.
func TestSignalsTwiceAndIgnored(t *testing.T) {
	slow.Skip(t)
	v := newVictim(t)
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	p := watch(t, exec.Command("sh", "-c", `trap "" HUP; exec "$0" archive list "$1"`, v.path, pipe))
	open := begins(p, pipe, "/none")
	if open == nil {
		t.Fatal("ended by itself")
	}
	defer open.Close()
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM, syscall.SIGTERM} {
		if err := p.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	p.end()
	if got := p.ProcessState.ExitCode(); got != 143 {
		t.Errorf("exit status %d, want 143", got)
	}
}
