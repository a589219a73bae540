// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/btfgen/btfgen/internal/output"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
)

const said = "waiting for another process that writes it"

// TestWaits lets a process wait for an output that another one has locked. It prints a message and reacts to signals. The
// lock of a killed process is free.
func TestWaits(t *testing.T) {
	slow.Skip(t)
	w := newTogether(t, 2)
	w.run("corpus", "import", "k0", "-o", "x.btfc")
	w.run("archive", "convert", "a0.btfa", "-o", "tree")
	w.run("archive", "convert", "a0.btfa", "-o", "x.btfa")
	w.run("generate", "--btf", "k0", "-o", "r.btfa", "--manifest", "r.json", "o.o")
	for _, tc := range []struct{ path, line string }{
		{"x.btfc", "corpus import k1 -o x.btfc"},
		{"link.btfc", "corpus import k1 -o x.btfc"},
		{"y.btfc", "corpus import k1 -o y.btfc"},
		{"x.btfa", "archive convert x.btfa a1.btfa --mixed -o x.btfa"},
		{"r.btfa", "generate --btf k1 --reuse r.btfa -o r.btfa --manifest r.json o.o"},
		{"tree", "archive convert tree a1.btfa --mixed -o tree"},
		{"tree", "generate --btf k1 -o tree o.o"},
		{"new", "generate --btf k1 -o new o.o"},
	} {
		t.Run(tc.line, func(t *testing.T) {
			w.t = t
			if tc.path == "link.btfc" {
				if err := os.Symlink("x.btfc", filepath.Join(w.dir, tc.path)); err != nil {
					t.Fatal(err)
				}
			}
			unlock, err := output.Lock(t.Context(), filepath.Join(w.dir, tc.path), filepath.Ext(tc.path) == "", nil)
			if err != nil {
				t.Fatal(err)
			}
			stopped := w.waiting(tc.line)
			stopped.Process.Signal(syscall.SIGTERM)
			if err := stopped.end(); err == nil || !strings.Contains(stopped.String(), "btfgen: terminated") {
				t.Errorf("%v: %s", err, stopped)
			}
			next := w.waiting(tc.line)
			unlock()
			if err := next.end(); err != nil {
				t.Errorf("%v: %s", err, next)
			}
			w.clean()
		})
	}
	t.Run("for a whole run", func(t *testing.T) {
		w.t = t
		object, err := os.ReadFile(filepath.Join(w.dir, "o.o"))
		if err != nil {
			t.Fatal(err)
		}
		stdin, feed, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer feed.Close()
		size, err := unix.FcntlInt(feed.Fd(), unix.F_SETPIPE_SZ, os.Getpagesize())
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(w.path, "generate", "--btf", "k0", "-o", "tree", "-")
		cmd.Dir, cmd.Stdin = w.dir, stdin
		first := watch(t, cmd)
		stdin.Close()
		// More than the pipe holds can be written only if the run reads its object.
		part := slices.Concat(object, make([]byte, 2*size))
		if _, err := feed.Write(part); err != nil {
			t.Fatalf("%v: %s", err, first)
		}
		ctx, cancel := context.WithCancel(t.Context())
		if unlock, err := output.Lock(ctx, filepath.Join(w.dir, "tree"), true, cancel); err == nil {
			unlock()
			t.Error("a run that still reads its object has not locked its output")
		}
		second := w.waiting("generate --btf k1 -o tree o.o")
		feed.Close()
		if err := cmp.Or(first.end(), second.end()); err != nil {
			t.Errorf("%v: %s%s", err, first, second)
		}
		w.clean()
	})
	t.Run("killed", func(t *testing.T) {
		w.t = t
		hold := exec.Command(os.Args[0], "-test.run=^TestHold$")
		hold.Env = append(os.Environ(), "BTFGEN_TEST_HOLD="+filepath.Join(w.dir, "x.btfc"))
		stdout, err := hold.StdoutPipe()
		if err == nil {
			err = hold.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stdout.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		hold.Process.Kill()
		hold.Wait()
		if strays := leftovers(t, w.dir); len(strays) != 1 {
			t.Errorf("%q are left of the killed process", strays)
		}
		if out := w.run("corpus", "import", "k1", "-o", "x.btfc"); strings.Contains(out, said) {
			t.Errorf("waits for a killed process: %s", out)
		}
		w.clean()
	})
}

// waiting starts a command and returns when it says that it waits.
func (w *together) waiting(line string) *watched {
	w.t.Helper()
	cmd := exec.Command(w.path, strings.Fields(line)...)
	cmd.Dir = w.dir
	p := watch(w.t, cmd)
	if !p.says(said) {
		w.t.Fatalf("did not wait: %v: %s", p.err, p)
	}
	return p
}

// TestHold locks an output until it is killed, for TestWaits.
func TestHold(t *testing.T) {
	path := os.Getenv("BTFGEN_TEST_HOLD")
	if path == "" {
		return
	}
	if _, err := output.Lock(t.Context(), path, false, nil); err != nil {
		t.Fatal(err)
	}
	fmt.Print("x")
	select {}
}

// leftovers returns the paths of temporary files in a directory.
func leftovers(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, ".btfgen.*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestPipeOutput adds kernels to a named pipe without a writer. To read it would wait without an end.
func TestPipeOutput(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "debian/12/x86_64/6.1.0-1-amd64.btf"), string(testbtf.Types(t, binary.LittleEndian, "struct s 4: i int 0")))
	t.Chdir(t.TempDir())
	if err := syscall.Mkfifo("k.btfc", 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"corpus", "import", "-o", "k.btfc", root}, {"corpus", "fetch", "--dry-run", "debian/12", "-o", "k.btfc"}} {
		if status, text := runAll(args...); status != statusFailed || !strings.Contains(text, "k.btfc: not a regular file") {
			t.Errorf("%s: exit status %d: %s", args, status, text)
		}
	}
}
