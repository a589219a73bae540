// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fieldFacts has tests of TestField about facts that kernels differ in.
var fieldFacts = map[string]func(t *testing.T, c *cases){
	"arg-untrusted": func(t *testing.T, c *cases) {
		j := c.judged(t, "arg-untrusted", "--btf $TESTDATA/vmlinux --select x86_64 --no-guess --loader libbpf prog.o")
		j.everywhere(t, func(kernel string) []string {
			if newer(kernel, "6.17") {
				return []string{"ok"}
			}
			return []string{"fails", "may fail"}
		})
	},
	"arena-ppc64le": func(t *testing.T, c *cases) {
		j := c.judged(t, "arena-ppc64le", "--btf $TESTDATA/vmlinux --no-guess --loader libbpf prog.o")
		j.everywhere(t, func(kernel string) []string {
			if strings.Contains(kernel, "/ppc64le/6.12") || strings.Contains(kernel, "/arm/") {
				return []string{"fails", "may fail"}
			}
			return nil
		})
	},
	"d-path-lsm": func(t *testing.T, c *cases) {
		j := c.judged(t, "d-path-lsm", "--btf debian --no-guess prog.o")
		if got := j.kernels("on_open", "fails"); len(got) != 1 {
			t.Errorf("on_open: %v", j.status["on_open"])
		}
		if got := j.kernels("on_close", "ok"); len(got) != 1 {
			t.Errorf("on_close: %v", j.status["on_close"])
		}
		j = c.judged(t, "d-path-lsm", "--btf $TESTDATA/vmlinux --select x86_64 --no-guess prog.o")
		for kernel, got := range j.status["on_open"] {
			if newer(kernel, "6.1") != (got == "ok") {
				t.Errorf("on_open on %s: %s", kernel, got)
			}
		}
	},
	"kprobe-multi-fprobe": func(t *testing.T, c *cases) {
		j := c.judged(t, "kprobe-multi-fprobe", "--btf debian --no-guess prog.o")
		for _, program := range []string{"km", "krm"} {
			if got := j.kernels(program, "fails"); len(got) != 1 {
				t.Errorf("%s: %v", program, j.status[program])
			}
		}
	},
	"lirc-mode2": func(t *testing.T, c *cases) {
		j := c.judged(t, "lirc-mode2", "--btf $TESTDATA/vmlinux --select x86_64 --no-guess prog.o")
		j.everywhere(t, func(string) []string { return []string{"fails"} })
	},
	"cgroup-storage-4.19": func(t *testing.T, c *cases) {
		j := c.judged(t, "cgroup-storage-4.19", "--btf ../../corpus --select kylin --loader libbpf prog.o")
		j.everywhere(t, func(string) []string { return []string{"ok"} })
	},
	"cookie-fentry-5.15": func(t *testing.T, c *cases) {
		dir := filepath.Join(c.dir, "cookie-fentry-5.15/k/ubuntu/22.04/x86_64")
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		from, err := filepath.Glob(filepath.Join(c.testdata, "vmlinux/debian/12/x86_64/6.1*"))
		if err != nil || len(from) == 0 {
			t.Fatalf("%v: no 6.1", err)
		}
		data, err := os.ReadFile(from[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "5.15.0-25-generic.btf"), data, 0o666); err != nil {
			t.Fatal(err)
		}
		j := c.judged(t, "cookie-fentry-5.15", "--btf k --loader libbpf prog.o")
		j.everywhere(t, func(string) []string { return []string{"fails", "may fail"} })
	},
	"probe-read-in-tc": func(t *testing.T, c *cases) {
		j := c.judged(t, "probe-read-in-tc", "--btf ../../corpus --select bclinux --loader libbpf prog.o")
		j.everywhere(t, func(string) []string { return []string{"fails", "may fail"} }) // the kernel's enum has the helper
	},
	"v4-on-6.9": func(t *testing.T, c *cases) {
		j := c.judged(t, "v4-on-6.9", "--btf k69 --loader libbpf prog.o")
		j.everywhere(t, func(string) []string { return []string{"ok"} })
	},
	"kfunc-raw-tp": func(t *testing.T, c *cases) {
		j := c.judged(t, "kfunc-raw-tp", "--btf $TESTDATA/vmlinux --select x86_64 --no-guess prog.o")
		j.everywhere(t, func(kernel string) []string {
			if newer(kernel, "7.0") {
				return []string{"ok"}
			}
			return []string{"fails", "may fail"}
		})
	},
	"sockmap-update-7.3": func(t *testing.T, c *cases) {
		j := c.judged(t, "sockmap-update-7.3", "--btf $TESTDATA/vmlinux --select x86_64 --no-guess --loader libbpf prog.o")
		j.everywhere(t, func(kernel string) []string {
			if newer(kernel, "7.3") {
				return []string{"fails"}
			}
			return []string{"ok"}
		})
	},
	"tail-call-riscv-ppc": func(t *testing.T, c *cases) {
		j := c.judged(t, "tail-call-riscv-ppc", "--btf $TESTDATA/vmlinux --no-guess --loader libbpf prog.o")
		j.everywhere(t, func(kernel string) []string {
			switch {
			case strings.Contains(kernel, "/arm/"):
				return []string{"fails"}
			case strings.Contains(kernel, "/ppc64le/6."), strings.Contains(kernel, "/riscv64/6."):
				return []string{"fails", "may fail"}
			}
			return nil
		})
	},
}

// newer reports whether the release in a kernel's name is at least another one.
func newer(kernel, release string) bool {
	parts := strings.Split(kernel, "/")
	return kernelRelease(parts[len(parts)-1]) >= kernelRelease(release)
}

// kernelRelease returns a release as a number that grows with it.
func kernelRelease(text string) (n int) {
	for i, part := range strings.FieldsFunc(text, func(r rune) bool { return r < '0' || r > '9' }) {
		if i < 2 {
			v := 0
			for _, r := range part {
				v = 10*v + int(r-'0')
			}
			n = 1000*n + v
		}
	}
	return n
}

// everywhere checks the verdicts on all programs; want returns those that are right for a kernel, nil for any.
func (j *judged) everywhere(t *testing.T, want func(kernel string) []string) {
	t.Helper()
	n := 0
	for program, on := range j.status {
		for kernel, got := range on {
			l := want(kernel)
			if n++; l != nil && !strings.Contains("|"+strings.Join(l, "|")+"|", "|"+got+"|") {
				t.Errorf("%s on %s: %s, want %s", program, kernel, got, strings.Join(l, " or "))
			}
		}
	}
	if n == 0 {
		t.Error("no kernel")
	}
}
