// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/output"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
)

// together runs commands at the same time in one directory.
type together struct {
	t    *testing.T
	path string // path of the executable
	dir  string
}

// newTogether writes n small kernels, an object, and minimized BTF for each kernel.
func newTogether(t *testing.T, n int) *together {
	w := &together{t, newVictim(t).path, t.TempDir()}
	for i := range n {
		w.put(fmt.Sprintf("k%d/debian/12/x86_64/6.1.%d.btf", i, i), testbtf.Types(t, binary.LittleEndian, fmt.Sprintf("struct s 8: a u32 0, b%d u32 4\n", i)))
	}
	w.put("o.o", testbtf.Object(t, binary.LittleEndian, "struct s 8: a u32 0\n", "program p\nbyte_off struct s.a"))
	for i := range n {
		w.run("generate", "--btf", fmt.Sprint("k", i), "-o", fmt.Sprintf("a%d.btfa", i), "o.o")
	}
	return w
}

func (w *together) put(name string, data []byte) {
	w.t.Helper()
	name = filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(name, data, 0o666); err != nil {
		w.t.Fatal(err)
	}
}

// start starts a command.
func (w *together) start(args ...string) (cmd *exec.Cmd, out *bytes.Buffer) {
	w.t.Helper()
	cmd, out = exec.Command(w.path, args...), new(bytes.Buffer)
	cmd.Dir, cmd.Stdout, cmd.Stderr = w.dir, out, out
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	return cmd, out
}

// run runs a command and returns its output.
func (w *together) run(args ...string) string {
	w.t.Helper()
	cmd, out := w.start(args...)
	if err := cmd.Wait(); err != nil {
		w.t.Fatalf("%q: %v: %s", args, err, out)
	}
	return out.String()
}

// all runs commands at the same time. @ is replaced by the number of the command.
func (w *together) all(n int, line string) {
	w.t.Helper()
	cmds, outs := make([]*exec.Cmd, n), make([]*bytes.Buffer, n)
	for i := range n {
		cmds[i], outs[i] = w.start(strings.Fields(strings.ReplaceAll(line, "@", fmt.Sprint(i)))...)
	}
	for i := range n {
		if err := cmds[i].Wait(); err != nil {
			w.t.Errorf("%q: %v: %s", cmds[i].Args[1:], err, outs[i])
		}
	}
	w.clean()
}

// clean fails if temporary files are left.
func (w *together) clean() {
	w.t.Helper()
	err := filepath.WalkDir(w.dir, func(p string, d fs.DirEntry, err error) error {
		if strings.HasPrefix(d.Name(), ".btfgen.") {
			w.t.Errorf("%s is left", p)
		}
		return err
	})
	if err != nil {
		w.t.Error(err)
	}
}

// TestTogether lets several processes read, change and replace one output at the same time. No addition may be lost.
func TestTogether(t *testing.T) {
	slow.Skip(t)
	const n = 6
	w := newTogether(t, n)
	want := func(kernels int, list ...string) {
		t.Helper()
		out := w.run(list...)
		for i := range kernels {
			if release := fmt.Sprintf("6.1.%d", i); !strings.Contains(out, release) {
				t.Errorf("%q: %s is lost: %s", list, release, out)
			}
		}
	}
	for range 2 {
		os.Remove(filepath.Join(w.dir, "x.btfc"))
		w.all(n, "corpus import k@ -o x.btfc")
		want(n, "corpus", "list", "x.btfc")
	}
	for range 2 {
		w.run("archive", "convert", "a0.btfa", "-o", "x.btfa")
		w.all(n, "archive convert x.btfa a@.btfa --mixed -o x.btfa")
		want(n, "archive", "list", "x.btfa")
	}
	for range 2 {
		w.run("archive", "convert", "a0.btfa", "-o", "tree")
		w.all(n, "archive convert tree a@.btfa --mixed -o tree")
		w.run("archive", "convert", "tree", "-o", "y.btfa")
		want(n, "archive", "list", "y.btfa")
	}
	for i := range 3 { // each run replaces the output of the run before it
		tree := fmt.Sprint("new", i)
		w.all(n, "generate --btf k@ -o "+tree+" o.o")
		list, err := output.ReadList(t.Context(), filepath.Join(w.dir, tree))
		if err != nil || list == nil || len(list.Files) != 1 {
			t.Fatal(list, err)
		}
		if found, err := filepath.Glob(filepath.Join(w.dir, tree, "debian/12/x86_64/*")); err != nil || len(found) != 1 || !strings.HasSuffix(found[0], list.Files[0]) {
			t.Errorf("%q with the list %q, %v", found, list.Files, err)
		}
	}
}
