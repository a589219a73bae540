// SPDX-License-Identifier: Apache-2.0

//go:build !windows

package main

import (
	"bytes"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/btfgen/btfgen/internal/testing/slow"
)

// touch would make a file, in the languages that init writes.
const touch = "touch PWNED"

// oddNames are the names of files that mean something to make, to a shell, in YAML or in Go.
var oddNames = []string{
	"a$(shell " + touch + ")", "a$(" + touch + ")", "a`" + touch + "`", "a;" + touch + ";", "a#b", "a:b", "a=b", "a b", "a\tb", "a|b", "a&b", "a%b", "a*b", "a?b", "a[b]",
	"a(b)", "~", "~root", "a\\b", "a\\", "a'b", "a\"b", "a\n\t" + touch, "a\nb: " + touch, "a!b", "a{b}", "a<b", "a>b", "x\nfunc init() {}\n",
	"a\xffb", "-f", "--", "a.b_c+d@e,f-g", "é", "a\u2028b", "a\ufeffb",
}

// cleanRun runs a program in the working directory, which has to succeed and to run nothing of a name.
func cleanRun(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Errorf("%s %q: %v\n%s", name, args, err, out)
	}
	if found, _ := filepath.Glob("PWNED*"); len(found) > 0 {
		t.Errorf("%s %q ran a command of a name", name, args)
	}
}

// TestInitNames runs init on objects, Go files and kernels with hostile names. It refuses a name that would mean something where it is written
// to, and writes nothing then. What it writes has the names, and no more.
func TestInitNames(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("needs make")
	}
	object, err := os.ReadFile("../../testdata/bpf/execsnoop.bpfel.o")
	if err != nil {
		t.Fatal(err)
	}
	// A program in place of btfgen, for the recipes.
	bin := t.TempDir()
	write(t, filepath.Join(bin, "btfgen"), "#!/bin/sh\nexit 1\n")
	if err := os.Chmod(filepath.Join(bin, "btfgen"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	names := oddNames
	if !slow.Enabled() {
		names = []string{oddNames[0], "a;" + touch + ";", "a\n\t" + touch, "a:b", "x\nfunc init() {}\n", "a\xffb", "-f", "a.b_c+d@e,f-g"}
	}
	accepted := make(map[string]int)
	for kind, place := range map[string]func(name string) map[string][]byte{
		"object": func(name string) map[string][]byte { return map[string][]byte{name + ".bpf.o": object} },
		"folder": func(name string) map[string][]byte { return map[string][]byte{name + "/x.bpf.o": object} },
		"source": func(name string) map[string][]byte { return map[string][]byte{name + ".bpf.c": nil} },
		"kernel": func(name string) map[string][]byte {
			return map[string][]byte{"x.bpf.o": object, "kernels/" + name: nil}
		},
		"go object": func(name string) map[string][]byte {
			return map[string][]byte{"main.go": []byte("package main\n\n//go:generate bpf2go Exec exec.bpf.c\n"), name + "_bpfel.o": object}
		},
		"go file": func(name string) map[string][]byte {
			return map[string][]byte{name + ".go": []byte("package main\n\n//go:generate bpf2go Exec exec.bpf.c\n"), "exec_bpfel.o": object}
		},
	} {
		for _, name := range names {
			t.Run(kind+" "+name, func(t *testing.T) {
				t.Chdir(t.TempDir())
				files := place(name)
				for path, data := range files {
					if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(path, data, 0o666); err != nil {
						t.Fatal(err)
					}
				}
				var stdout, stderr bytes.Buffer
				s := run(t.Context(), []string{"init"}, &stdout, &stderr)
				if s == statusFailed {
					if found, _ := filepath.Glob("*btfgen*"); len(found) > 0 || !strings.Contains(stderr.String(), "init cannot write") {
						t.Errorf("init wrote %q: %s", found, &stderr)
					}
					return
				}
				if s != statusOK {
					t.Fatalf("status %d: %s", s, &stderr)
				}
				accepted[kind]++
				var doc struct{ Objects []string }
				text, err := os.ReadFile("btfgen.yaml")
				if err == nil {
					err = yaml.Unmarshal(text, &doc)
				}
				for _, o := range doc.Objects {
					if strings.HasSuffix(kind, "object") && o != "exec_bpfeb.o" && o != "exec_bpfel.o" && files[o] == nil {
						err = os.ErrNotExist
					}
				}
				if err != nil || len(doc.Objects) == 0 {
					t.Errorf("%v: btfgen.yaml has %q", err, doc.Objects)
				}
				made, _ := filepath.Glob("*_btfgen*.go")
				for _, f := range made {
					parsed, err := parser.ParseFile(token.NewFileSet(), f, nil, parser.ParseComments)
					if err != nil {
						t.Errorf("%s: %v", f, err)
						continue
					}
					if want := 2 * strings.Count(f, "_test.go"); len(parsed.Decls) != want {
						t.Errorf("%s: %d declarations, want %d", f, len(parsed.Decls), want)
					}
					for _, c := range parsed.Comments {
						for _, line := range c.List {
							if strings.HasPrefix(line.Text, "//go:") && line.Text != "//go:generate go tool btfgen generate" {
								t.Errorf("%s: %s", f, line.Text)
							}
						}
					}
				}
				if len(made) > 0 {
					return
				}
				for object := range files {
					if strings.HasSuffix(object, ".c") {
						write(t, strings.TrimSuffix(object, "c")+"o", "")
					}
				}
				archive := slices.DeleteFunc(strings.Fields(stdout.String()), func(w string) bool { return !strings.HasSuffix(w, ".btfa'") })
				if len(archive) != 1 {
					t.Fatalf("init names %q", archive)
				}
				goal := strings.TrimSuffix(archive[0], "'")
				cleanRun(t, "make", "-n", "-f", "btfgen.mk", "--", goal, "check-archive")
				out, err := exec.Command("make", "-f", "btfgen.mk", "--", goal).CombinedOutput() // runs the recipe, which fails
				if err == nil || !strings.Contains(string(out), "Error 1") {
					t.Errorf("make: %v\n%s", err, out)
				}
				if found, _ := filepath.Glob("PWNED*"); len(found) > 0 {
					t.Errorf("make ran a command of a name:\n%s", out)
				}
			})
		}
	}
	for _, kind := range []string{"object", "folder", "source", "go object", "go file"} {
		if n := accepted[kind]; n < 2 || n == len(names) {
			t.Errorf("%s: init accepted %d of %d names", kind, n, len(names))
		}
	}
	if n := accepted["kernel"]; n != len(names) {
		t.Errorf("init accepted %d of %d names of kernels, which it does not write", n, len(names))
	}
}
