// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
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

// INT, TERM and HUP end every command soon, with their own status, and leave no temporary files.
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
	longest := time.Duration(0)
	for i, line := range endless {
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
		cmd, stderr := exec.Command(v.path, strings.Fields(args)...), new(bytes.Buffer)
		cmd.Stderr = stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			cmd.Wait()
			close(ended)
		}()
		open := begins(cmd.Process.Pid, pipe, kernels, ended)
		if open == nil {
			t.Errorf("%s: ended by itself: %s", line, stderr)
			continue
		}
		time.Sleep(time.Duration(i*7%100) * time.Millisecond) // any moment will do
		start := time.Now()
		if err := cmd.Process.Signal(s.signal); err != nil {
			t.Errorf("%s: %v: %s", line, err, stderr)
		}
		select {
		case <-ended:
		case <-time.After(10 * time.Second): // the limit is a fifth of a second, which a busy machine cannot hold
			cmd.Process.Kill()
			<-ended
		}
		open.Close()
		took := time.Since(start)
		longest = max(longest, took)
		t.Logf("%6.1f ms  %s", took.Seconds()*1000, line)
		if got := cmd.ProcessState.ExitCode(); got != s.status || !strings.HasSuffix(stderr.String(), s.message) {
			t.Errorf("%s: %v: exit status %d, want %d: %s", line, s.signal, got, s.status, stderr)
		}
		if left := temporaries(t, out); len(left) > 0 {
			t.Errorf("%s: left behind: %q", line, left)
		}
	}
	t.Logf("the longest took %v", longest)
}

// begins waits until a process has a pipe or a file below a directory open, and so listens to signals. It returns the open
// pipe, or nil if the process ends before.
func begins(pid int, pipe, dir string, ended <-chan struct{}) *os.File {
	fds := fmt.Sprintf("/proc/%d/fd", pid)
	for {
		select {
		case <-ended:
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
	cmd := exec.Command("sh", "-c", `trap "" HUP; exec "$0" archive list "$1"`, v.path, pipe)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		cmd.Wait()
		close(ended)
	}()
	open := begins(cmd.Process.Pid, pipe, "/none", ended)
	if open == nil {
		t.Fatal("ended by itself")
	}
	defer open.Close()
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM, syscall.SIGTERM} {
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		cmd.Process.Kill()
		<-ended
	}
	if got := cmd.ProcessState.ExitCode(); got != 143 {
		t.Errorf("exit status %d, want 143", got)
	}
}
