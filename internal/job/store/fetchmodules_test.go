// SPDX-License-Identifier: Apache-2.0

package store

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/selection"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testrepo"
)

// TestFetchModules fetches a kernel and modules that have only DWARF. Modules are converted if the run chooses modules.
func TestFetchModules(t *testing.T) {
	slow.Skip(t)
	for _, name := range []string{"gcc", "pahole"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("needs %s", name)
		}
	}
	r := testrepo.New(t, "apt")
	compile := func(source string, args ...string) []byte {
		dir := t.TempDir()
		in, out := filepath.Join(dir, "in.c"), filepath.Join(dir, "out")
		if err := os.WriteFile(in, []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		if text, err := exec.Command("gcc", append(args, "-g", "-O1", "-o", out, in)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		data, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	vmlinux := compile(`__attribute__((section(".rodata.a"), used)) const char linux_banner[] = "Linux version `+r.Release(1)+` (someone@somewhere)";
struct task_struct { struct task_struct *real_parent; int pid, tgid; char comm[16]; };
struct task_struct init_task;
void _start(void) { for (;;) init_task.pid++; }
`, "-static", "-nostdlib", "-no-pie")
	module := compile(`struct test_own { long n; }; struct test_own own; long test_do(struct test_own *o) { return o->n; }`, "-c")
	debug := "usr/lib/debug/lib/modules/" + r.Release(1) + "/"
	r.Add(r.Release(1), nil, map[string][]byte{debug + "vmlinux": vmlinux, debug + "kernel/test_0.ko": module, debug + "kernel/test-1.ko": module})
	r.Index()
	for text, want := range map[string][]string{"": nil, "none": nil, "test_1": {"test_1"}, "test-0,missing": {"test_0"}, "all": {"test_0", "test_1"}} {
		cfg := fetchFrom(t, r, r.URL)
		if text != "" {
			m, err := selection.ParseModules(text)
			if err != nil {
				t.Fatal(err)
			}
			cfg.Options.Modules, cfg.EncodeModules = m, true
		}
		res, err := Fetch(background, cfg)
		if err != nil {
			t.Fatal(err)
		}
		if s := states(res)[r.Release(1)]; s != "new" {
			t.Fatal(s)
		}
		if n := res.WithoutModules; (n == 1) != (text == "") {
			t.Errorf("%q: %d kernels without BTF of modules", text, n)
		}
		c, err := corpus.Open(background, []string{cfg.Path}, corpus.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Files[0].Read(background, func(k *corpus.Kernel) error {
			var got []string
			for _, m := range k.Modules {
				got = append(got, m.Name)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%q: modules %v, want %v", text, got, want)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if text == "test-0,missing" {
			if l := cfg.Options.Modules.NotFound(); len(l) != 1 || l[0].Name != "missing" {
				t.Errorf("modules that no kernel has: %v", l)
			}
		}
	}
}
