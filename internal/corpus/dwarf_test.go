// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/btfgen/btfgen/internal/corpus/pahole"
	"github.com/btfgen/btfgen/internal/corpus/selection"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/started"
)

// kernelSource is what becomes a kernel by gcc, as far as anybody looks.
const kernelSource = `
__attribute__((section(".rodata.a"), used)) const char linux_banner[] = "Linux version 5.4.0-7-test (someone@somewhere) #1\n";
enum state { RUNNING, SLEEPING = 7 };
enum large { FAR = 1ULL << 40 };
typedef unsigned int u32;
struct list_head { struct list_head *next, *prev; };
struct task_struct {
	volatile long state;
	u32 pid : 22, traced : 1;
	union { enum state a; enum large b; };
	struct list_head tasks;
	char comm[16];
	float load;
};
struct task_struct init_task;
int wake_up(struct task_struct *t, enum state s) { t->state = s; return t->pid; }
void _start(void) { wake_up(&init_task, SLEEPING); for (;;); }
`

// tool skips the test where a program is missing.
func tool(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("needs %s", name)
		}
	}
}

func command(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// compiledKernel compiles kernelSource to vmlinux in a new directory.
func compiledKernel(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	source, path := filepath.Join(dir, "kernel.c"), filepath.Join(dir, "vmlinux")
	if err := os.WriteFile(source, []byte(kernelSource), 0o644); err != nil {
		t.Fatal(err)
	}
	command(t, "gcc", "-g", "-O1", "-static", "-nostdlib", "-fno-pie", "-no-pie", "-fno-asynchronous-unwind-tables", "-Wl,--build-id=none", "-o", path, source)
	return path
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// newTestEncoder returns an Encoder, whose directory must be empty at the end.
func newTestEncoder(t *testing.T) *pahole.Encoder {
	t.Helper()
	dir := t.TempDir()
	e := pahole.New(dir, 2)
	t.Cleanup(func() {
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
	return e
}

// withDWARF reads a file as corpus import does.
func withDWARF(ctx context.Context, e *pahole.Encoder, path string) (kernels []Kernel, err error) {
	c, err := Open(ctx, []string{path}, Options{DWARF: e})
	if err != nil {
		return nil, err
	}
	for _, f := range c.Files {
		err = f.Read(ctx, func(k *Kernel) error {
			kept := *k
			kept.BTF = bytes.Clone(k.BTF)
			kernels = append(kernels, kept)
			return nil
		})
	}
	return kernels, err
}

func TestEncode(t *testing.T) {
	tool(t, "gcc", "pahole")
	path := compiledKernel(t)
	e := newTestEncoder(t)
	version, options, err := e.Find(t.Context())
	if err != nil {
		t.Skip("needs a newer pahole:", err)
	}
	detached := filepath.Join(t.TempDir(), "btf")
	command(t, "pahole", append(slices.Clone(options), "--btf_encode_detached="+detached, path)...)
	want := mustRead(t, detached)
	data := mustRead(t, path)

	for name, content := range map[string][]byte{
		"debian/12/x86_64/5.4.0-7-test.elf":     data,
		"debian/12/x86_64/5.4.0-7-test.elf.zst": compress("zst", data),
		"debian/12/x86_64/vmlinux":              data, // the banner has the release
		"a.deb":                                 debOf(member{"./usr/lib/debug/boot/vmlinux-5.4.0-7-test", data}),
		"b.deb":                                 debOf(member{"./usr/lib/debug/lib/modules/5.4.0-7-test/vmlinux", data}),
		"c.deb":                                 debOf(member{"./usr/lib/debug/lib/modules/5.4.0-7-test/vmlinux", data}, member{"./usr/lib/debug/.build-id/ab/cd.debug", data}),
		"d.tar.xz":                              compress("xz", tarOf(member{"vmlinux-5.4.0-7-test", data})),
		"usr/lib/debug/boot/vmlinux-5.4.0-7-test":        data,
		"usr/lib/debug/lib/modules/5.4.0-7-test/vmlinux": data,
	} {
		file := filepath.Join(t.TempDir(), name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, content, 0o644); err != nil {
			t.Fatal(err)
		}
		kernels, err := withDWARF(t.Context(), e, file)
		if err != nil || len(kernels) != 1 {
			t.Errorf("%s: %d kernels, %v", name, len(kernels), err)
			continue
		}
		k := kernels[0]
		if !bytes.Equal(k.BTF, want) {
			t.Errorf("%s: %d bytes, pahole makes %d others", name, len(k.BTF), len(want))
		}
		if k.Key.Release != "5.4.0-7-test" || k.Arch != "x86_64" || k.Made.By != "pahole "+version {
			t.Errorf("%s: %s of %s by %q", name, k.Key, k.Arch, k.Made.By)
		}

		_, err = withDWARF(t.Context(), nil, file)
		if err == nil || !strings.Contains(err.Error(), pahole.ErrDWARF.Error()) {
			t.Errorf("%s, without a way to encode it: %v", name, err)
		}
	}
}

// TestEncodedKinds holds that loaders from before libbpf 0.4 know the kinds.
func TestEncodedKinds(t *testing.T) {
	tool(t, "gcc", "pahole", "bpftool")
	kernels, err := withDWARF(t.Context(), newTestEncoder(t), compiledKernel(t))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "k.btf")
	if err := os.WriteFile(file, kernels[0].BTF, 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("bpftool", "btf", "dump", "file", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"FLOAT", "DECL_TAG", "TYPE_TAG", "ENUM64"} {
		if bytes.Contains(out, []byte("] "+kind+" ")) {
			t.Errorf("has a %s:\n%s", kind, out)
		}
	}
	for _, text := range []string{"STRUCT 'task_struct'", "ENUM 'large'", "FUNC 'wake_up'"} {
		if !bytes.Contains(out, []byte(text)) {
			t.Errorf("has no %s:\n%s", text, out)
		}
	}
}

// TestEncodeBoth holds that the BTF of a kernel goes before its DWARF, and that a section without content is none.
func TestEncodeBoth(t *testing.T) {
	tool(t, "gcc", "pahole", "objcopy")
	path := compiledKernel(t)
	btf := filepath.Join(t.TempDir(), "btf")
	if err := os.WriteFile(btf, blobLE, 0o644); err != nil {
		t.Fatal(err)
	}
	command(t, "objcopy", "--add-section", ".BTF="+btf, "--set-section-flags", ".BTF=alloc,readonly", path)
	kernels, err := withDWARF(t.Context(), newTestEncoder(t), path)
	if err != nil || len(kernels) != 1 || !bytes.Equal(kernels[0].BTF, blobLE) || kernels[0].Made.By != "" {
		t.Errorf("with BTF: %v, %+v", err, kernels)
	}
	command(t, "objcopy", "--only-keep-debug", path)
	kernels, err = withDWARF(t.Context(), newTestEncoder(t), path)
	if err != nil || len(kernels) != 1 || len(kernels[0].BTF) == len(blobLE) || kernels[0].Made.By == "" {
		t.Errorf("with nothing but debug information: %v, %+v", err, kernels)
	}
}

// TestEncodeDamaged gives pahole what it may not expect. Whatever it does, reading ends.
func TestEncodeDamaged(t *testing.T) {
	tool(t, "gcc", "pahole")
	data := mustRead(t, compiledKernel(t))
	e := newTestEncoder(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	file := filepath.Join(t.TempDir(), "vmlinux-5.4.0")
	encoded := 0
	for i := range 60 {
		b := bytes.Clone(data)
		switch i % 3 {
		case 0:
			b = b[:rnd.IntN(len(b))]
		default:
			for range 1 + rnd.IntN(20) {
				b[64+rnd.IntN(len(b)-64)] = byte(rnd.Uint32())
			}
		}
		if err := os.WriteFile(file, b, 0o644); err != nil {
			t.Fatal(err)
		}
		kernels, err := withDWARF(t.Context(), e, file)
		if err == nil && len(kernels) == 1 {
			encoded++
		} else if err == nil {
			t.Errorf("%d: %d kernels and no error", i, len(kernels))
		}
	}
	t.Logf("%d of 60 encoded", encoded)
}

// fakePahole puts a script in place of pahole: $out is what it is to write.
func fakePahole(t *testing.T, version, script string) {
	t.Helper()
	tool(t, "sh")
	dir := t.TempDir()
	text := fmt.Sprintf("#!/bin/sh\nfor a; do case $a in --version) echo %s; exit;; --btf_encode_detached=*) out=${a#*=};; esac; done\n%s\n", version, script)
	if err := os.WriteFile(filepath.Join(dir, "pahole"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
}

// dwarfKernel writes an ELF file with a .debug_info section that only pahole would find to be invalid.
func dwarfKernel(t *testing.T, secs ...section) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "vmlinux-6.1.7-test")
	data := elfFile(binary.LittleEndian, elf.ET_EXEC, elf.EM_X86_64, append(secs, section{".debug_info", 0, []byte("odd")})...)
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestEncodeFails(t *testing.T) {
	slow.Skip(t)
	blob := filepath.Join(t.TempDir(), "blob")
	if err := os.WriteFile(blob, blobLE, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ version, script, want string }{
		"good":          {"v1.27", "while read -r l; do :; done <" + blob + "; exec /bin/cat " + blob + " >$out", ""},
		"newer":         {"v2.0", "exec /bin/cat " + blob + " >$out", ""},
		"warns":         {"v1.24", "echo odd type >&2; exec /bin/cat " + blob + " >$out", ""},
		"fails":         {"v1.27", "echo 'odd type' >&2; echo more >&2; exit 3", "pahole v1.27: odd type (exit status 3)"},
		"fails late":    {"v1.27", "/bin/cat " + blob + " >$out; exit 3", "pahole v1.27: exit status 3"},
		"nothing":       {"v1.27", "", "pahole v1.27: no output"},
		"nothing, says": {"v1.27", "echo no debug information", "pahole v1.27: no debug information"},
		"killed":        {"v1.27", "kill -9 $$", "pahole v1.27: signal: killed"},
		"no BTF":        {"v1.27", "echo hello >$out", "no BTF magic"},
		"too much":      {"v1.27", "exec /bin/cat /dev/zero >$out", "pahole v1.27: larger than the limit of 1 MiB"},
		"holds on":      {"v1.27", "/bin/sleep 5 4>&- & /bin/cat " + blob + " >$out", "WaitDelay"},
		"dwz":           {"v1.24", "echo 'WARNING: DW_TAG_partial_unit used, some types will not be considered!' >&2; exec /bin/cat " + blob + " >$out", "1.32 can"},
		"old":           {"v1.21", "exec /bin/cat " + blob + " >$out", "1.22 or newer is needed to convert it, this is v1.21"},
		"no version":    {"hello", "", "no version in its output"},
	} {
		t.Run(name, func(t *testing.T) {
			fakePahole(t, test.version, test.script)
			c, err := Open(t.Context(), []string{dwarfKernel(t)}, Options{DWARF: newTestEncoder(t), MaxSize: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			err = c.Files[0].Read(t.Context(), func(k *Kernel) error {
				n++
				if !bytes.Equal(k.BTF, blobLE) || k.Made.By != "pahole "+test.version {
					t.Errorf("%d bytes by %s", len(k.BTF), k.Made.By)
				}
				return nil
			})
			if test.want == "" && (err != nil || n != 1) || test.want != "" && (err == nil || n != 0 || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%d kernels, %v; want %q", n, err, test.want)
			}
		})
	}
}

func TestEncodeNoPahole(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := withDWARF(t.Context(), newTestEncoder(t), dwarfKernel(t))
	if !errors.Is(err, pahole.ErrMissing) {
		t.Error(err)
	}
}

// TestEncodeHangs holds that a pahole that does not end is ended, with the context and after its time.
func TestEncodeHangs(t *testing.T) {
	runs := filepath.Join(t.TempDir(), "runs")
	fakePahole(t, "v1.27", ": >"+runs+"; exec /bin/sleep 1000000")
	file := dwarfKernel(t)
	if _, err := withDWARF(started.Context(t, runs), newTestEncoder(t), file); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	e := newTestEncoder(t)
	e.Time = 100 * time.Millisecond
	if _, err := withDWARF(t.Context(), e, file); err == nil || !strings.Contains(err.Error(), "pahole v1.27: not done after 100ms") {
		t.Error(err)
	}
}

// TestEncodeMemory holds that pahole cannot take what it likes.
func TestEncodeMemory(t *testing.T) {
	slow.Skip(t)
	if _, err := os.Stat("/proc/self/limits"); err != nil {
		t.Skip("needs Linux")
	}
	// The limit is set once the program runs.
	fakePahole(t, "v1.27", `while :; do
	while read -r l; do
		case $l in "Max address space "*unlimited*) ;; "Max address space "*) echo "$l" >&2; exit 1;; esac
	done </proc/self/limits
done`)
	_, err := withDWARF(t.Context(), newTestEncoder(t), dwarfKernel(t))
	if err == nil || !strings.Contains(err.Error(), fmt.Sprint(uint64(limits.PaholeMemory))) {
		t.Error(err)
	}
}

// TestFirstDWARF checks that File.First makes no BTF of DWARF.
func TestFirstDWARF(t *testing.T) {
	fakePahole(t, "v1.27", "exit 1")
	c, err := Open(t.Context(), []string{dwarfKernel(t)}, Options{DWARF: newTestEncoder(t)})
	if err != nil {
		t.Fatal(err)
	}
	err = c.Files[0].First(t.Context(), func([]byte) { t.Error("a kernel") })
	if !errors.Is(err, pahole.ErrDWARF) {
		t.Errorf("error %v, want %v", err, pahole.ErrDWARF)
	}
}

// TestEncodeSelects checks that excluded kernels and programs are not encoded.
func TestEncodeSelects(t *testing.T) {
	fakePahole(t, "v1.27", "exit 1")
	data := mustRead(t, dwarfKernel(t))
	dir := t.TempDir()
	file := filepath.Join(dir, "linux-image-dbg.deb")
	other := elfFile(binary.LittleEndian, elf.ET_DYN, elf.EM_X86_64, section{".debug_info", 0, []byte("odd")})
	err := os.WriteFile(file, debOf(member{"debian/12/x86_64/vmlinux-6.1.7-test", data}, member{"usr/bin/program", other}), 0o644)
	if err != nil {
		t.Fatal(err)
	}
	selectors := parseSelectors(t, "ubuntu")
	c, err := Open(t.Context(), []string{file}, Options{DWARF: newTestEncoder(t), Select: selectors})
	if err != nil {
		t.Fatal(err)
	}
	err = c.Files[0].Read(t.Context(), func(k *Kernel) error { return errors.New("a kernel") })
	if err != nil {
		t.Error(err)
	}
}

const moduleSource = `
struct list_head { struct list_head *next, *prev; };
struct nf_own { struct list_head list; long n; };
struct nf_own own;
long nf_do(struct nf_own *o) { return o->n; }
`

// TestEncodeModuleDWARF makes BTF of modules that have DWARF, before and after their kernel. bpftool must be able to read it on top of the
// kernel's. A damaged module is left out.
func TestEncodeModuleDWARF(t *testing.T) {
	tool(t, "gcc", "pahole", "bpftool")
	vmlinux := mustRead(t, compiledKernel(t))
	dir := t.TempDir()
	source, path := filepath.Join(dir, "nf.c"), filepath.Join(dir, "nf.ko")
	if err := os.WriteFile(source, []byte(moduleSource), 0o644); err != nil {
		t.Fatal(err)
	}
	command(t, "gcc", "-g", "-O1", "-c", "-o", path, source)
	module := mustRead(t, path)
	broken := elfFile(binary.LittleEndian, elf.ET_REL, elf.EM_X86_64, section{".debug_info", 0, []byte("odd")})
	const top = "usr/lib/debug/lib/modules/5.4.0-7-test/"
	for name, members := range map[string][]member{
		"after":  {{top + "a/vmlinux", vmlinux}, {top + "kernel/nf-a.ko", module}, {top + "kernel/odd.ko", broken}},
		"before": {{top + "kernel/nf-a.ko.debug", module}, {top + "kernel/odd.ko.debug", broken}, {top + "vmlinux", vmlinux}},
	} {
		file := filepath.Join(t.TempDir(), "a.deb")
		if err := os.WriteFile(file, debOf(members...), 0o644); err != nil {
			t.Fatal(err)
		}
		c, err := Open(t.Context(), []string{file}, Options{DWARF: newTestEncoder(t)})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		err = c.Files[0].Read(t.Context(), func(k *Kernel) error {
			n++
			if len(k.Modules) != 1 || k.Modules[0].Name != "nf_a" {
				t.Fatalf("%s: modules %v", name, k.Modules)
			}
			base, split := filepath.Join(t.TempDir(), "base"), filepath.Join(t.TempDir(), "split")
			if err := errors.Join(os.WriteFile(base, k.BTF, 0o644), os.WriteFile(split, k.Modules[0].BTF, 0o644)); err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command("bpftool", "btf", "dump", "file", split, "-B", base).CombinedOutput()
			if err != nil || !bytes.Contains(out, []byte("STRUCT 'nf_own'")) || bytes.Contains(out, []byte("STRUCT 'list_head'")) {
				t.Errorf("%s: %v, %s", name, err, out)
			}
			return nil
		})
		if n != 1 || err == nil || !strings.Contains(err.Error(), "odd.ko") || strings.Contains(err.Error(), "nf-a") {
			t.Errorf("%s: %d kernels, %v", name, n, err)
		}

		c, err = Open(t.Context(), []string{file}, Options{DWARF: newTestEncoder(t), Modules: selection.NoModules()})
		if err != nil {
			t.Fatal(err)
		}
		err = c.Files[0].Read(t.Context(), func(k *Kernel) error {
			if len(k.Modules) > 0 {
				t.Errorf("%s: modules %v, want none", name, k.Modules)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s, without modules: %v", name, err)
		}
	}
}

// TestEncodeModules holds that BTF of modules, which goes with the BTF that its kernel was built with, is not used with another.
func TestEncodeModules(t *testing.T) {
	blob := filepath.Join(t.TempDir(), "blob")
	if err := os.WriteFile(blob, blobLE, 0o644); err != nil {
		t.Fatal(err)
	}
	fakePahole(t, "v1.27", "exec /bin/cat "+blob+" >$out")
	data := mustRead(t, dwarfKernel(t))
	file := filepath.Join(t.TempDir(), "a.deb")
	const dir = "usr/lib/debug/lib/modules/6.1.7-test/"
	mod := elfFile(binary.LittleEndian, elf.ET_REL, elf.EM_X86_64, section{".BTF", 0, splitLE})
	if err := os.WriteFile(file, debOf(member{dir + "vmlinux", data}, member{dir + "kernel/nf.ko", mod}), 0o644); err != nil {
		t.Fatal(err)
	}
	kernels, err := withDWARF(t.Context(), newTestEncoder(t), file)
	if len(kernels) != 1 || len(kernels[0].Modules) != 0 || err == nil || !strings.Contains(err.Error(), "its modules' BTF is left out") {
		t.Errorf("%v: %+v", err, kernels)
	}
}
