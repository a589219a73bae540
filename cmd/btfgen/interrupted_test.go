// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
)

// victim is a run that is ended before it is done.
type victim struct {
	path    string // path of the executable
	dir     string // folder of the output alone
	sources string
	objects []string
}

func newVictim(t *testing.T) *victim {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs signals to send")
	}
	v := &victim{path: program(t), dir: t.TempDir(), sources: "../../testdata/vmlinux"}
	v.objects, _ = filepath.Glob("../../testdata/bpf/*.bpfel.o")
	if len(v.objects) < 10 {
		t.Fatalf("objects: %q", v.objects)
	}
	return v
}

func (v *victim) out() string { return filepath.Join(v.dir, "same.btfa") }

// generate returns a command that writes the output for objects.
func (v *victim) generate(objects []string, options ...string) (cmd *exec.Cmd, stderr *bytes.Buffer) {
	args := append([]string{"generate", "--btf", v.sources, "-o", v.out()}, options...)
	cmd, stderr = exec.Command(v.path, append(args, objects...)...), new(bytes.Buffer)
	cmd.Stderr = stderr
	return cmd, stderr
}

// make writes the output for objects without interruption and returns it.
func (v *victim) make(t *testing.T, objects ...string) []byte {
	t.Helper()
	cmd, stderr := v.generate(objects)
	cmd.Run()
	if s := cmd.ProcessState.ExitCode(); s != statusOK && s != statusFindings {
		t.Fatalf("exit status %d: %s", s, stderr)
	}
	return v.read(t)
}

func (v *victim) read(t *testing.T) []byte {
	t.Helper()
	data, err := os.ReadFile(v.out())
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// reset removes everything from the directory except an output.
func (v *victim) reset(t *testing.T, data []byte) {
	t.Helper()
	for _, name := range v.others(t) {
		if err := os.Remove(filepath.Join(v.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(v.out(), data, 0o666); err != nil {
		t.Fatal(err)
	}
}

// others lists the other files in the directory.
func (v *victim) others(t *testing.T) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(v.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != filepath.Base(v.out()) {
			names = append(names, e.Name())
		}
	}
	return names
}

// An interrupted generate ends with its own status, leaves no files and keeps the old output. TestEndOn checks how soon.
func TestInterrupted(t *testing.T) {
	if !raceflag.Enabled {
		slow.Skip(t)
	}
	if signal.Ignored(os.Interrupt) { // children inherit this, as from a script in the background
		t.Skip("needs SIGINT, which is ignored here")
	}
	v := newVictim(t)
	before := v.make(t, "../../testdata/bpf/tcplife.bpfel.o")
	v.sources = manyKernels(t)
	v.reset(t, before)
	// Without the signal it would take some ten seconds, and end with another status.
	cmd, _ := v.generate(v.objects, "--jobs", "1")
	p := watch(t, cmd)
	if !p.says("btfgen: objects for ") {
		t.Fatalf("ended before it read kernels: %v: %s", p.err, p)
	}
	start := time.Now()
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	p.end()
	t.Logf("ended %v after the signal", time.Since(start))
	if status := p.ProcessState.ExitCode(); status != 130 || !strings.Contains(p.String(), "btfgen: interrupted\n") {
		t.Errorf("exit status %d, want %d: %s", status, 130, p)
	}
	if left := v.others(t); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	if !bytes.Equal(v.read(t), before) {
		t.Error("the archive is not the old one")
	}
}

// manyKernels writes a small corpus of many kernels.
func manyKernels(t *testing.T) string {
	t.Helper()
	const kernel = "x86_64/6.1.0-47-amd64.btf.zst"
	data, err := os.ReadFile(filepath.Join("../../testdata/vmlinux/debian/12", kernel))
	if err != nil {
		t.Fatal(err)
	}
	dir, first := t.TempDir(), ""
	for n := range 1000 {
		path := filepath.Join(dir, "debian", fmt.Sprint(n), kernel)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = path
			err = os.WriteFile(path, data, 0o666)
		} else {
			err = os.Link(first, path)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
