// SPDX-License-Identifier: Apache-2.0

package examples_test

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/loadtest"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// libbpfgo is the module that fits Debian's libbpf.
const libbpfgo = "github.com/aquasecurity/libbpfgo@v0.4.6-libbpf-1.1.0"

// recipes puts what docs/tracers.md has in a module of its own, with kernels of
// which one is the running kernel if that has BTF. It returns whether it has.
func recipes(t *testing.T) (dir string, host bool) {
	t.Helper()
	page, err := os.ReadFile("../docs/tracers.md")
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	files := regexp.MustCompile("(?s)<!-- file: ([a-z0-9/.]+) -->\n```[a-z]+\n(.*?)```\n").FindAllStringSubmatch(string(page), -1)
	if n := strings.Count(string(page), "```") / 2; len(files) != n || n < 5 {
		t.Fatalf("%d files in %d blocks of code", len(files), n)
	}
	put := func(name, text string) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range files {
		put(f[1], f[2])
	}
	here, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile("../" + name)
		if err != nil {
			t.Fatal(err)
		}
		s := strings.Replace(string(text), "module github.com/btfgen/btfgen\n", "module example.org/tracer\n", 1)
		if name == "go.mod" {
			s += "\nrequire github.com/btfgen/btfgen v0.0.0\nreplace github.com/btfgen/btfgen => " + here + "\n"
		}
		put(name, s)
	}
	k, err := kernel.Host(kernel.HostOptions{})
	if err != nil {
		t.Fatal(err)
	}
	k.ID = cmp.Or(k.ID, "linux")
	btf, err := os.ReadFile(kernel.HostBTF)
	if err == nil {
		put("kernels/"+k.FileName(), string(btf))
		return dir, true
	}
	if err := os.CopyFS(filepath.Join(dir, "kernels"), os.DirFS("../testdata/vmlinux")); err != nil {
		t.Fatal(err)
	}
	return dir, false
}

// in runs a program in a directory, without network for Go.
func in(t *testing.T, dir, name string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off", "CGO_LDFLAGS=-lbpf -lelf -lz",
		"BPF2GO_CC=clang-19", "BPF2GO_STRIP=llvm-strip-19", "BPF2GO_CFLAGS="+include(), "PATH="+os.Getenv("PATH")+":/usr/sbin")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// include says where Debian has the headers of the machine.
func include() string {
	dirs, _ := filepath.Glob("/usr/include/*-linux-gnu/asm")
	if len(dirs) == 0 {
		return ""
	}
	return "-idirafter " + filepath.Dir(dirs[0])
}

// must is in for what has to succeed.
func must(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	if out, err := in(t, dir, name, args...); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// attaches runs a tracer of the page, with the types of the kernel and of the
// archive, if it may.
func attaches(t *testing.T, tracer string, options map[string]string) {
	t.Helper()
	if why := loadtest.Unable(); why != "" {
		t.Logf("built, but to run it the test %s", why)
		return
	}
	for option, source := range options {
		args := strings.Fields(option)
		out, err := exec.Command(tracer, args...).CombinedOutput()
		if strings.Contains(string(out), "operation not permitted") || strings.Contains(string(out), "Operation not permitted") {
			t.Skipf("needs a machine that lets root load programs\n%s", out)
		}
		if want := "attached, with types from the " + source; err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s %v: %v\n%s", tracer, args, err, out)
		}
	}
}

// All that docs/tracers.md tells to copy builds, and attaches.
func TestRecipes(t *testing.T) {
	slow.Skip(t)
	raceflag.SkipSerial(t)
	for _, tool := range []string{"clang-19", "llvm-strip-19"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("needs " + tool)
		}
	}
	if _, err := os.Stat("/usr/include/bpf/bpf_core_read.h"); err != nil {
		t.Skip("needs libbpf-dev")
	}
	dir, host := recipes(t)
	both := map[string]string{"": "kernel", "-ignore-kernel-btf": "archive"}

	must(t, filepath.Join(dir, "cilium"), "go", "generate")
	must(t, dir, "go", "vet", "./cilium")
	must(t, dir, "go", "build", "-o", "out/cilium", "./cilium")
	attaches(t, filepath.Join(dir, "out/cilium"), both)

	must(t, dir, "go", "run", "github.com/btfgen/btfgen/cmd/btfgen", "generate", "--btf", "kernels", "-o", "tree/btfs/", "cilium/exec_bpfel.o")
	must(t, dir, "go", "vet", "./tree")
	if out, err := in(t, dir, "go", "run", "./tree"); host && (err != nil || !strings.Contains(out, "types from the archive")) {
		t.Errorf("tree: %v\n%s", err, out)
	}

	archive, object := filepath.Join(dir, "cilium", "exec.btfa"), filepath.Join(dir, "cilium", "exec_bpfel.o")
	t.Run("libbpfgo", func(t *testing.T) {
		if out, err := in(t, dir, "go", "get", libbpfgo); err != nil {
			t.Skipf("needs go mod download %s\n%s", libbpfgo, out)
		}
		must(t, dir, "cp", archive, "libbpfgo/exec.btfa")
		must(t, dir, "cp", object, "libbpfgo/exec.bpf.o")
		must(t, dir, "go", "vet", "./libbpfgo")
		if out, err := in(t, dir, "go", "build", "-o", "out/libbpfgo", "./libbpfgo"); err != nil {
			t.Skipf("needs the libbpf that %s is for: %v\n%s", libbpfgo, err, out)
		}
		attaches(t, filepath.Join(dir, "out/libbpfgo"), both)
	})
	t.Run("C", func(t *testing.T) {
		if _, err := os.Stat("/usr/include/zstd.h"); err != nil {
			t.Skip("needs libzstd-dev")
		}
		must(t, dir, "cp", archive, "c/exec.btfa")
		must(t, dir, "sh", "-c", "bpftool gen skeleton cilium/exec_bpfel.o name exec >c/exec.skel.h")
		lib, err := filepath.Abs("../lib/c")
		if err != nil {
			t.Fatal(err)
		}
		must(t, filepath.Join(dir, "c"), "cc", "-O2", "-Wall", "-Wextra", "-Werror", "-I", lib, "-o", "../out/c", "main.c",
			filepath.Join(lib, "btfa.c"), "-lbpf", "-lelf", "-lz", "-lzstd")
		attaches(t, filepath.Join(dir, "out/c"), map[string]string{"": "kernel"})
	})
}
