// SPDX-License-Identifier: Apache-2.0

// Package examples_test builds the examples and, as root, runs them on this
// kernel with its own BTF ignored.
package examples_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"

	"github.com/btfgen/btfgen/internal/testing/loadtest"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/archive/archivetest"
)

const object = "go-tracer/bpf/exec.bpf.o"

// output runs a program that must succeed.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// hostArchive builds btfgen and makes an archive for this kernel.
func hostArchive(t *testing.T) (btfgen, file string) {
	t.Helper()
	const kernel = "/sys/kernel/btf/vmlinux"
	loadtest.Kernel(t)
	dir := t.TempDir()
	btfgen, file = filepath.Join(dir, "btfgen"), filepath.Join(dir, "host.btfa")
	output(t, "go", "build", "-o", btfgen, "../cmd/btfgen")
	output(t, btfgen, "generate", "--btf", kernel, "-o", file, object)
	return btfgen, file
}

// trace runs a tracer that stops after one event, and a program that it reports.
// It returns the tracer's standard error.
func trace(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	var out strings.Builder
	cmd.Stdout = &out
	pipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	lines := bufio.NewScanner(pipe)
	for lines.Scan() && lines.Text() != "ready" {
		said.WriteString(lines.Text() + "\n")
	}
	for range 3 {
		output(t, "true")
	}
	io.Copy(&said, pipe)
	if err := cmd.Wait(); err != nil {
		if strings.Contains(said.String(), "operation not permitted") {
			t.Skip("needs a machine that lets root load programs")
		}
		t.Fatalf("%s: %v\n%s", name, err, &said)
	}
	if fields := strings.Fields(out.String()); len(fields) < 3 || fields[2] == "" {
		t.Errorf("%s: traced %q", name, &out)
	}
	return said.String()
}

// The tracer can use the archive in the repository.
func TestCommittedArchive(t *testing.T) {
	a, err := archive.OpenFile("go-tracer/tracer.btfa")
	if err != nil {
		t.Fatal(err)
	}
	archivetest.Covers(t, "go-tracer/tracer.btfa", object)
	for _, k := range a.Keys() {
		b, err := a.BTF(k)
		if err != nil {
			t.Fatal(err)
		}
		spec, err := btf.LoadSpecFromReader(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		var task *btf.Struct
		if err := spec.TypeByName("task_struct", &task); err != nil || len(task.Members) < 3 {
			t.Errorf("%s: %v, %v", k, task, err)
		}
	}
	if a.Len() < 5 {
		t.Errorf("%d kernels", a.Len())
	}
}

// The command in README.md compiles the source to the committed object.
func TestObject(t *testing.T) {
	for _, tool := range []string{"clang-19", "llvm-strip-19"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("needs " + tool)
		}
	}
	if _, err := os.Stat("/usr/include/bpf/bpf_core_read.h"); err != nil {
		t.Skip("needs libbpf-dev")
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, command, _ := strings.Cut(string(readme), "(cd examples/go-tracer/bpf &&")
	command, _, found := strings.Cut(command, ")\n\n")
	if !found {
		t.Fatal("README.md has no command to compile the object")
	}
	dir := t.TempDir()
	source, err := os.ReadFile("go-tracer/bpf/exec.bpf.c")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "exec.bpf.c"), source, 0o666); err != nil {
		t.Fatal(err)
	}
	output(t, "sh", "-ec", "cd "+dir+"; "+command)
	got, err := os.ReadFile(filepath.Join(dir, "exec.bpf.o"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(object)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s (%d bytes) is not what its source compiles to (%d bytes)", object, len(want), len(got))
	}
}

func TestGoTracer(t *testing.T) {
	slow.Skip(t)
	output(t, "go", "build", "-o", os.DevNull, "./go-tracer")
	_, file := hostArchive(t)
	dir := t.TempDir()
	embedded, err := filepath.Abs("go-tracer/tracer.btfa")
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {embedded: file}})
	if err != nil {
		t.Fatal(err)
	}
	replace := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(replace, overlay, 0o666); err != nil {
		t.Fatal(err)
	}
	tracer := filepath.Join(dir, "tracer")
	output(t, "go", "build", "-overlay", replace, "-o", tracer, "./go-tracer")
	if said := trace(t, tracer, "-ignore-kernel-btf", "-count", "1"); !strings.Contains(said, "types from: archive ") {
		t.Errorf("said %q", said)
	}
	if said := trace(t, tracer, "-count", "1"); !strings.Contains(said, "types from: kernel ") {
		t.Errorf("said %q", said)
	}
}

// The Makefile does not rebuild the object if its source is newer, as in a fresh clone: make's built-in rule
// would compile it for the host.
func TestCTracerObject(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("needs make")
	}
	plan := output(t, "make", "-n", "-C", "c-tracer", "OUT="+t.TempDir(), "-W", "../go-tracer/bpf/exec.bpf.c")
	if strings.Contains(plan, "-o ../"+object) || !strings.Contains(plan, "gen skeleton") {
		t.Errorf("make would do this:\n%s", plan)
	}
}

func TestCTracer(t *testing.T) {
	slow.Skip(t)
	t.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin")
	for _, tool := range []string{"cc", "make", "bpftool"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("needs " + tool)
		}
	}
	for _, header := range []string{"bpf/libbpf.h", "zstd.h"} {
		if _, err := os.Stat("/usr/include/" + header); err != nil {
			t.Skip("needs " + header)
		}
	}
	build := func(args ...string) string {
		dir := t.TempDir()
		output(t, "make", append([]string{"-s", "-C", "c-tracer", "OUT=" + dir, "CFLAGS=-O2 -Werror"}, args...)...)
		return filepath.Join(dir, "tracer")
	}
	stale := filepath.Join(t.TempDir(), "stale.btfa")
	output(t, "go", "run", "../cmd/btfgen", "generate", "-q", "--btf", "../testdata/vmlinux/debian/12", "-o", stale, "../testdata/bpf/tcplife.bpfel.o")
	said, err := exec.Command(build("ARCHIVE="+stale), "-ignore-kernel-btf").CombinedOutput()
	if want := "c-tracer: archive was made for tcplife.bpfel.o (sha256 "; err == nil || !strings.HasPrefix(string(said), want) {
		t.Errorf("with a stale archive: %v, %q, want %q", err, said, want)
	}
	build()
	btfgen, file := hostArchive(t)
	one := filepath.Join(t.TempDir(), "kernel.btf")
	output(t, btfgen, "archive", "lookup", file, "-o", one)
	for _, tracer := range []string{build("ARCHIVE=" + file), build("ARCHIVE="+file, "LDFLAGS=-static")} {
		if said := trace(t, tracer, "-ignore-kernel-btf", "-count", "1"); !strings.Contains(said, "types from: archive ") {
			t.Errorf("said %q", said)
		}
		if said := trace(t, tracer, "-count", "1"); !strings.Contains(said, "types from: kernel") {
			t.Errorf("said %q", said)
		}
		if said := trace(t, tracer, "-btf", one, "-count", "1"); !strings.Contains(said, "types from: "+one) {
			t.Errorf("said %q", said)
		}
	}
}
