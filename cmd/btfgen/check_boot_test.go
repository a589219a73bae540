// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/check/boot"
	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testelf"
	"github.com/btfgen/btfgen/internal/testing/testrepo"
)

// bootFiles writes an image and a static program that pass the checks of check --boot before it boots.
func bootFiles(t *testing.T) (image, program string) {
	t.Helper()
	dir := t.TempDir()
	h := elf.Header64{Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: 1, Ehsize: 64}
	copy(h.Ident[:], "\x7fELF\x02\x01\x01")
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, h); err != nil {
		t.Fatal(err)
	}
	image, program = filepath.Join(dir, "vmlinuz"), filepath.Join(dir, "tool")
	for name, data := range map[string][]byte{image: bzImage(nil), program: b.Bytes(), filepath.Join(dir, "tool.txt"): []byte("x")} {
		if err := os.WriteFile(name, data, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return image, program
}

// bzImage returns an image for x86_64 with a kernel in it, by Linux's x86 boot protocol.
func bzImage(kernel []byte) []byte {
	const at = 4096
	b := make([]byte, at)
	copy(b[0x1fe:], "\x55\xaa")
	copy(b[0x202:], "HdrS")
	le := binary.LittleEndian
	le.PutUint16(b[0x206:], 0x20f)        // version of the protocol
	b[0x236] = 1                          // 64 bits
	le.PutUint32(b[0x248:], at-(4+1)*512) // offset of the kernel from the end of the set-up code
	le.PutUint32(b[0x24c:], uint32(len(kernel)))
	return append(b, kernel...)
}

// fakeQEMU puts a script in PATH in place of qemu. With -accel kvm, the script reports an error of KVM.
func fakeQEMU(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	text := "#!/bin/sh\ncase \"$*\" in *'-accel kvm'*) echo 'KVM internal error' >&2; exec sleep 1000;; esac\n" + script
	if err := os.WriteFile(filepath.Join(dir, "qemu-system-x86_64"), []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func TestCheckBootCommand(t *testing.T) {
	slow.Skip(t)
	if _, err := os.Stat("/dev/fd"); err != nil {
		t.Skip("needs /dev/fd")
	}
	image, program := bootFiles(t)
	text := filepath.Join(filepath.Dir(program), "tool.txt")
	object, err := filepath.Abs("../../testdata/bpf/biolat.bpfel.o")
	if err != nil {
		t.Fatal(err)
	}
	const hello = `echo '@btfgen {"kind":"hello","name":"6.1.0"}';`
	const end = `echo '@btfgen {"kind":"end"}'`
	for _, tt := range []struct {
		name   string
		script string
		args   []string
		status int
		stdout string
		stderr string
	}{
		{"works", hello + `printf '%s\n' '@btfgen {"kind":"output","output":"all\nis "}' '@btfgen {"kind":"output","output":"well\u001b[31m\n"}';` +
			`echo '@btfgen {"kind":"exit"}';` + end, nil, 0, "vmlinuz:\n  all\n  is well\\x1b[31m\n  tool: exit status 0\n", "done after"},
		{"fails", hello + `echo '@btfgen {"kind":"exit","error":"exit status 4","status":4}';` + end, nil, 3, "", "failing: .*vmlinuz: tool: exit status 4"},
		{"does not say", hello + end, nil, 3, "", "did not arrive"},
		{"ends at once", "exit 1", nil, 1, "", "qemu-system-x86_64 ended early"},
		{"hangs", "exec sleep 1000", []string{"--timeout", "1"}, 1, "", "not done after 1s"},
		{"dies later", hello + "echo 'Kernel panic - not syncing: x'", nil, 3, "", "its console ends with: Kernel panic"},
		{"is not static", "", []string{"--command", text}, 1, "", "tool.txt is no program for Linux"},
		{"is for another machine", "", []string{"--btfgen", object}, 1, "", "the kernel is for x86_64, and .*biolat.bpfel.o for another machine"},
		{"no package", "", []string{"--boot", text}, 1, "", "tool.txt: "},
		{"not there", "", []string{"--command", "/no/such"}, 2, "", "/no/such"},
		{"names no program", "", []string{"--command", " X=1 "}, 2, "", "--command names no program"},
		{"the same name twice", "", []string{program}, 2, "", "two files are called tool"},
		{"with types", "", []string{"--types", "x.btf"}, 2, "", "--types does not go with --command"},
		{"as JSON", "", []string{"--json"}, 2, "", "--json does not go with --command"},
		{"as a page", "", []string{"--format", "html"}, 2, "", `--format "html": does not go with --boot`},
		{"as two", "", []string{"--json", "--format", "text"}, 2, "", "--json does not go with --format text"},
		{"a target of nothing", "", []string{"--target", "x"}, 2, "", `--target "x": want PROGRAM=NAME`},
		{"no time", "", []string{"--timeout", "0"}, 2, "", "--timeout \"0\": want a number of 1 or more"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fakeQEMU(t, tt.script)
			args := map[string]string{"--boot": image, "--command": program, "--btfgen": program}
			line := []string{"check"}
			for i := 0; i+1 < len(tt.args); i += 2 {
				if _, ok := args[tt.args[i]]; ok {
					args[tt.args[i]] = tt.args[i+1]
				}
			}
			for name, value := range args {
				line = append(line, name, value)
			}
			for i := 0; i < len(tt.args); i++ {
				if _, ok := args[tt.args[i]]; ok {
					i++
					continue
				}
				line = append(line, tt.args[i])
			}
			var stdout, stderr bytes.Buffer
			if got := run(t.Context(), line, &stdout, &stderr); got != tt.status {
				t.Errorf("status %d, want %d\n%s", got, tt.status, &stderr)
			}
			if !strings.HasSuffix(stdout.String(), tt.stdout) {
				t.Errorf("stdout %q", &stdout)
			}
			matches(t, stderr.String(), tt.stderr)
		})
	}
}

// unpack returns the content of a file that is compressed with zstd.
func unpack(t *testing.T, path string) []byte {
	t.Helper()
	packed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	data, err := d.DecodeAll(packed, nil)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// bootKernel writes the image of a kernel that has real BTF, and its configuration in the same directory.
func bootKernel(t *testing.T, config string) (image string) {
	t.Helper()
	types := unpack(t, debianBTF)
	vmlinux, _ := (&testelf.File{Order: binary.LittleEndian, Type: elf.ET_EXEC, Machine: elf.EM_X86_64, Sections: []testelf.Section{{Name: ".BTF", Data: types}}}).Build()
	dir := t.TempDir()
	image = filepath.Join(dir, "vmlinuz-6.1.0-47-amd64")
	write(t, image, string(bzImage(vmlinux)))
	write(t, filepath.Join(dir, "config-6.1.0-47-amd64"), config)
	return image
}

// debianBTF is the BTF of bootKernel's kernel.
const debianBTF = "../../testdata/vmlinux/debian/12/x86_64/6.1.0-47-amd64.btf.zst"

// TestCheckBootTypes boots a kernel without BTF. Its types are those that --btf has for its release.
func TestCheckBootTypes(t *testing.T) {
	if _, err := os.Stat("/dev/fd"); err != nil {
		t.Skip("needs /dev/fd")
	}
	_, program := bootFiles(t)
	dir := t.TempDir()
	vmlinux, _ := (&testelf.File{Order: binary.LittleEndian, Type: elf.ET_EXEC, Machine: elf.EM_X86_64}).Build()
	seen := filepath.Join(dir, "seen")
	fakeQEMU(t, `cat /dev/fd/4 >`+seen+`; printf '%s\n' '@btfgen {"kind":"hello"}' '@btfgen {"kind":"object"}' '@btfgen {"kind":"program","name":"truth"}' '@btfgen {"kind":"end"}'`)
	for _, tt := range []struct {
		name   string
		image  string
		btf    []string
		stdout string
		stderr string
	}{
		{"none", "vmlinuz-6.1.0-47-amd64", nil, "", `no .BTF section.*\n.*if the kernel has no BTF, name its types with --btf\n`},
		{"its own", "vmlinuz-6.1.0-47-amd64", []string{"../../testdata/vmlinux"}, `(?m)^debian/12/x86_64/6.1.0-47-amd64:\n(.*\n)*.* truth +guarded +loads$`, ""},
		{"of another release", "vmlinuz-5.4.0-1", []string{debianBTF}, "", `no BTF in it, and --btf has 0 kernels 5.4.0-1 for x86_64, not one`},
		{"without a release", "vmlinuz-5.4.0-1", []string{filepath.Join(dir, "kernel.btf")}, `(?m)vmlinuz-5.4.0-1:\n(.*\n)*.* truth +guarded +loads$`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			os.Remove(seen)
			image := filepath.Join(t.TempDir(), tt.image)
			write(t, image, string(bzImage(vmlinux)))
			write(t, filepath.Join(filepath.Dir(image), strings.Replace(tt.image, "vmlinuz", "config", 1)), "CONFIG_BPF_SYSCALL=y\n")
			write(t, filepath.Join(dir, "kernel.btf"), string(unpack(t, debianBTF)))
			args := []string{"check", "--boot", image, "--btfgen", program, "--verbose", "../../testdata/bpf/settings.bpfel.o"}
			for _, b := range tt.btf {
				args = append(args, "--btf", b)
			}
			var stdout, stderr bytes.Buffer
			got := run(t.Context(), args, &stdout, &stderr)
			initramfs, _ := os.ReadFile(seen)
			if tt.stderr != "" {
				if got != statusFailed || len(initramfs) > 0 {
					t.Errorf("status %d, %d bytes for the guest", got, len(initramfs))
				}
				matches(t, stderr.String(), tt.stderr)
				return
			}
			matches(t, stdout.String(), tt.stdout)
			for _, want := range []string{`"btf":true`, "CONFIG_BPF_SYSCALL=y\n", string(unpack(t, debianBTF))} {
				if !bytes.Contains(initramfs, []byte(want)) {
					t.Errorf("the guest does not have %.40q: %s", want, &stderr)
				}
			}
		})
	}
}

// TestCheckBootArchive boots a kernel with an archive. Programs that differ with the archive's BTF are findings, and so is a
// kernel that the archive lacks.
func TestCheckBootArchive(t *testing.T) {
	if _, err := os.Stat("/dev/fd"); err != nil {
		t.Skip("needs /dev/fd")
	}
	_, program := bootFiles(t)
	const object = "../../testdata/bpf/execsnoop.bpfel.o"
	dir := t.TempDir()
	has, lacks := filepath.Join(dir, "has.btfa"), filepath.Join(dir, "lacks.btfa")
	for out, btf := range map[string]string{has: debianBTF, lacks: "../../testdata/vmlinux/debian/11"} {
		var stderr bytes.Buffer
		if got := run(t.Context(), []string{"generate", "--btf", btf, "-o", out, object}, io.Discard, &stderr); got != statusOK {
			t.Fatalf("status %d: %s", got, &stderr)
		}
	}
	image := bootKernel(t, "CONFIG_BPF_SYSCALL=y\n")
	for _, tt := range []struct {
		name, archive, results string
		status                 int
		stdout, stderr         string
	}{
		{"same", has, "same same", statusOK, `(?s)2 programs the same with the archive's BTF for debian/12/x86_64/6.1.0-47-amd64, 0 different\n.*\n\|.*\|same with the archive's BTF\|2/0\|0/0\|`, ""},
		{"differs", has, "same number", statusFindings, `(?s)handle_exit +ok +loads; DIFFERS: number\n.*\n\|.*\|same with the archive's BTF\|1/1\|`, ""},
		{"missing", lacks, "", statusFindings, "2 programs ok, as predicted", `missing: .*not in the archive: no kernel 6.1.0-47-amd64 .*; to boot one that it has, use --boot debian/11/x86_64/5.10.0-30-amd64\n`},
		{"no archive", object, "", statusFailed, "", `--archive .*execsnoop.bpfel.o: not a .btfa archive`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			first, second, _ := strings.Cut(tt.results, " ")
			fakeQEMU(t, `printf '%s\n' '@btfgen {"kind":"hello"}' '@btfgen {"kind":"object"}' '@btfgen {"kind":"program","name":"handle_exec","alone":"loads","archive":"`+first+
				`"}' '@btfgen {"kind":"program","name":"handle_exit","alone":"loads","archive":"`+second+`"}' '@btfgen {"kind":"end"}'`)
			var stdout, stderr bytes.Buffer
			args := []string{"check", "--boot", image, "--btfgen", program, "--archive", tt.archive, object}
			if got := run(t.Context(), args, &stdout, &stderr); got != tt.status {
				t.Errorf("status %d, want %d: %s", got, tt.status, &stderr)
			}
			matches(t, stdout.String(), tt.stdout)
			matches(t, stderr.String(), tt.stderr)
		})
	}
}

// TestBootExcludes wants --boot to exclude all options about whole objects but --when and --tail-called, which say where programs are loaded
// and whether they are attached.
func TestBootExcludes(t *testing.T) {
	for _, f := range policyFlags() {
		if name := f.Names()[0]; slices.Contains(conflicts["boot"], name) == (name == "when" || name == "tail-called") {
			t.Errorf("--boot and --%s", name)
		}
	}
}

// TestCheckBootWhen leaves out the programs and objects that --when does not load on the kernel.
func TestCheckBootWhen(t *testing.T) {
	if _, err := os.Stat("/dev/fd"); err != nil {
		t.Skip("needs /dev/fd")
	}
	_, program := bootFiles(t)
	image := bootKernel(t, "CONFIG_BPF_SYSCALL=y\n")
	seen := filepath.Join(t.TempDir(), "seen")
	fakeQEMU(t, `cat /dev/fd/4 >`+seen+`; printf '%s\n' '@btfgen {"kind":"hello"}' '@btfgen {"kind":"object"}' '@btfgen {"kind":"program","name":"handle_exec"}' '@btfgen {"kind":"end"}'`)
	const objects = "../../testdata/bpf/"
	for _, tt := range []struct {
		name   string
		args   []string
		status int
		job    string
		stderr string
	}{
		{"a program", []string{"--when", "handle_exit=<5.11", objects + "execsnoop.bpfel.o"}, statusOK, `"objects":1,.*"skip":{"0":\["handle_exit"\]}`, "1 program not loaded"},
		{"an object", []string{"--when", "biolat.bpfel.o:=<5.11", "--when", "handle_exit=<5.11", objects + "biolat.bpfel.o", objects + "execsnoop.bpfel.o"}, statusOK,
			`"objects":1,.*"skip":{"0":\["handle_exit"\]}`, "3 programs not loaded"},
		{"of other kernels", []string{"--when", "handle_exec=<5.11", "--when", "handle_exit=<5.11", objects + "execsnoop.bpfel.o"}, statusFailed, "", "unmatched: .*: no program is loaded on it"},
		{"of no program", []string{"--when", "nothing=<5.11", "--when", "handle_exit=<5.11", objects + "execsnoop.bpfel.o"}, statusFindings, "", "unmatched: .*--when nothing=<5.11"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			os.Remove(seen)
			var stdout, stderr bytes.Buffer
			if got := run(t.Context(), append([]string{"check", "--boot", image, "--btfgen", program, "--verbose"}, tt.args...), &stdout, &stderr); got != tt.status {
				t.Errorf("status %d, want %d", got, tt.status)
			}
			initramfs, _ := os.ReadFile(seen)
			matches(t, string(initramfs), tt.job)
			matches(t, stderr.String(), tt.stderr)
			if tt.status == statusOK && strings.Contains(stdout.String(), "handle_exit") {
				t.Errorf("a program that is not loaded: %s", &stdout)
			}
		})
	}
}

// TestCheckBootResumes boots a kernel again without a program that crashes or stops it. Results so far are kept, and what is lost is named.
func TestCheckBootResumes(t *testing.T) {
	if _, err := os.Stat("/dev/fd"); err != nil {
		t.Skip("needs /dev/fd")
	}
	_, program := bootFiles(t)
	image := bootKernel(t, "CONFIG_BPF_SYSCALL=y\n")
	const first = `printf '%s\n' '@btfgen {"kind":"hello"}' '@btfgen {"kind":"object"}' '@btfgen {"kind":"program","name":"letter"}' '@btfgen {"kind":"program","name":"no_symbol"}'; `
	const second = `printf '%s\n' '@btfgen {"kind":"hello"}' '@btfgen {"kind":"object"}' '@btfgen {"kind":"program","name":"text"}' '@btfgen {"kind":"program","name":"truth"}'; `
	const skips = `if grep -aq '"skip":{"0":."letter","no_symbol","not_set"' /dev/fd/4; then `
	const panics, ends = `echo 'Kernel panic - not syncing: x'; `, `echo '@btfgen {"kind":"end"}'; `
	for _, tt := range []struct {
		name, script   string
		stdout, stderr string
	}{
		{"crashes", skips + second + ends + "else " + first + panics + "fi",
			`(?m)^ +settings.bpfel.o +not_set +\w+ +not tried: the machine stopped: .*Kernel panic - not syncing: x$`, `damaged: .*: the machine stopped at settings.bpfel.o: not_set: .*Kernel panic`},
		{"hangs", skips + second + ends + "else " + first + "exec sleep 1000; fi",
			`(?m)^ +settings.bpfel.o +not_set +\w+ +not tried: the machine stopped: silent for 2.5s`, `damaged: .*: the machine stopped at settings.bpfel.o: not_set: silent for 2.5s`},
		{"crashes again", first + panics, `truth +guarded +not tried`, `damaged: .*: no result for \d programs: settings.bpfel.o:.*truth`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fakeQEMU(t, tt.script)
			var stdout, stderr bytes.Buffer
			got := run(t.Context(), []string{"check", "--boot", image, "--btfgen", program, "--timeout", "10", "-v", "../../testdata/bpf/settings.bpfel.o"}, &stdout, &stderr)
			if got != statusFindings {
				t.Errorf("status %d: %s", got, &stderr)
			}
			matches(t, stdout.String(), tt.stdout)
			matches(t, stdout.String(), `no_symbol +may fail +loads`)
			if !strings.Contains(tt.name, "again") {
				matches(t, stdout.String(), `truth +guarded +loads`)
			}
			matches(t, stderr.String(), tt.stderr)
		})
	}
}

// TestCheckBootConfig checks that predictions use the kernel's configuration, and that the guest gets it.
func TestCheckBootConfig(t *testing.T) {
	if _, err := os.Stat("/dev/fd"); err != nil {
		t.Skip("needs /dev/fd")
	}
	_, program := bootFiles(t)
	object, err := filepath.Abs("../../testdata/bpf/settings.bpfel.o")
	if err != nil {
		t.Fatal(err)
	}
	const text = "CONFIG_BPF_SYSCALL=y\nCONFIG_HZ=250\nCONFIG_BPF_JIT=m\n"
	seen := filepath.Join(t.TempDir(), "seen")
	fakeQEMU(t, `cat /dev/fd/4 >`+seen+`; echo '@btfgen {"kind":"hello"}'; echo '@btfgen {"kind":"end"}'`)
	kernel := bootKernel(t, text)
	// Options of btfgen.yaml that are about other kernels and whole objects do not count.
	t.Chdir(t.TempDir())
	write(t, "btfgen.yaml", "btf: kernels/\ncheck: { optional: [truth], format: html, require: ['debian>=12'] }\n")
	var stdout, stderr bytes.Buffer
	run(t.Context(), []string{"check", "--boot", kernel, "--btfgen", program, "--verbose", object}, &stdout, &stderr)
	for _, want := range []string{`truth +guarded +not tried`, `number +guarded +not tried`, `tristate +fails +not tried`, `not_set +guarded`} {
		matches(t, stdout.String(), want)
	}
	initramfs, err := os.ReadFile(seen)
	if err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	if !bytes.Contains(initramfs, []byte(text)) {
		t.Error("the guest does not have the configuration")
	}
}

// TestCheckBootFetch boots the newest kernel of a repository. A second run downloads nothing.
func TestCheckBootFetch(t *testing.T) {
	slow.Skip(t)
	if _, err := os.Stat("/dev/fd"); err != nil {
		t.Skip("needs /dev/fd")
	}
	repo := testrepo.New(t, "apt")
	_, program := bootFiles(t)
	image, err := os.ReadFile(bootKernel(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	repo.Add(repo.Release(1), []byte("an older kernel"))
	newest := repo.Add(repo.Release(2), image)
	repo.Index()
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir)
	catalogue := filepath.Join(dir, "my.yaml")
	write(t, catalogue, repo.Catalogue(repo.URL, repo.Key()))
	fakeQEMU(t, `printf '%s\n' '@btfgen {"kind":"hello"}' '@btfgen {"kind":"object"}' '@btfgen {"kind":"program","name":"on_exec"}' '@btfgen {"kind":"end"}'`)
	boot := func(name string, want int, more ...string) (string, string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		args := append([]string{"check", "--boot", name, "--catalogue", catalogue, "--btfgen", program, "../../testdata/bpf/execsnoop.bpfel.o"}, more...)
		if got := run(t.Context(), args, &stdout, &stderr); got != want {
			t.Errorf("%s: status %d: %s", name, got, &stderr)
		}
		return stdout.String(), stderr.String()
	}
	for _, want := range [][]string{{newest}, nil} {
		// --as names a file beside a kernel of the catalogue.
		stdout, _ := boot("test/1", statusFindings, "--boot", bootKernel(t, ""), "--as", "other/2/x86_64")
		matches(t, stdout, `(?m)^test/1/x86_64/`+repo.Release(2)+`:$`)
		matches(t, stdout, `(?m)^other/2/x86_64/6.1.0-47-amd64:$`)
		if got := repo.Downloads(); !slices.Equal(got, want) {
			t.Errorf("downloads %v, want %v", got, want)
		}
	}
	for _, tt := range []struct {
		name   string
		status int
		want   string
	}{
		{"test/1/x86_64/6.1.0-1-*", statusFailed, `damaged: .*/test/1/x86_64/linux-image-6.1.0-1-amd64_6.1-1_amd64.deb: holds no BTF\n`},
		{"test/1/x86_64/5.*", statusFailed, `test/1/x86_64/5.\*: no kernel matches\n`},
		{"test/1/arm64", statusUsage, `test/1/arm64: the catalogue has x86_64\n`},
		{"debian/12/arm64", statusUsage, `"debian/12/arm64": btfgen is for x86_64 \(--btfgen FILE names another btfgen\)\n`},
		{"test/2", statusUsage, `"test/2": no such file, and test/2: not in the catalogue; nearest: test/1`},
		{"no/such/file.deb", statusUsage, `"no/such/file.deb": no such file, and no/such/file.deb: not in the catalogue`},
		{"file.deb", statusFailed, `file.deb: no such file`},
	} {
		_, stderr := boot(tt.name, tt.status)
		matches(t, stderr, tt.want)
	}
}

// bootDocument is the output of check --boot --json.
type bootDocument struct {
	Kernels []struct {
		Modules  []string
		Programs []bootedProgram
	}
}

type bootedProgram struct {
	Program, Wrong string
	Load           rule.Status
	Actual         boot.Actual
	Findings       []struct{ Code, Message string }
}

// TestCheckBootOutput compares the file of -o with standard output, as text and as JSON.
func TestCheckBootOutput(t *testing.T) {
	if _, err := os.Stat("/dev/fd"); err != nil {
		t.Skip("needs /dev/fd")
	}
	_, program := bootFiles(t)
	object, err := filepath.Abs("../../testdata/bpf/broken.bpfel.o")
	if err != nil {
		t.Fatal(err)
	}
	image := bootKernel(t, "CONFIG_BPF_SYSCALL=y\n")
	fakeQEMU(t, `printf '%s\n' '@btfgen {"kind":"hello","name":"6.1.0"}' '@btfgen {"kind":"object","alone":"odd section"}' '@btfgen {"kind":"program","name":"sound","attach":"attached"}' \
		'@btfgen {"kind":"program","name":"no_guard","alone":"loads"}' \
		'@btfgen {"kind":"program","name":"unknown_helper","error":"no","errno":22,"log":"invalid func unknown#9999"}' '@btfgen {"kind":"end"}'`)
	runBoot := func(status int, args ...string) (string, string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		if got := run(t.Context(), append([]string{"check", "--boot", image, "--btfgen", program, object}, args...), &stdout, &stderr); got != status {
			t.Errorf("%q: status %d, want %d: %s", args, got, status, &stderr)
		}
		return stdout.String(), stderr.String()
	}
	file := filepath.Join(t.TempDir(), "report")
	for _, form := range []string{"text", "json"} {
		printed, _ := runBoot(statusFindings, "--format", form)
		nothing, _ := runBoot(statusFindings, "--format", form, "-o", file)
		written, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if nothing != "" || printed != string(written) || printed == "" {
			t.Errorf("%s: %q printed, %q in the file, and %q beside it", form, printed, written, nothing)
		}
		if strings.Count(printed, ": ebpf-go does not read it: odd section\n") != 1 && form == "text" {
			t.Errorf("objects that cilium/ebpf does not read: %s", printed)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var rep bootDocument
	if err := json.Unmarshal(text, &rep); err != nil {
		t.Fatal(err)
	}
	got := make(map[string]bootedProgram)
	for _, p := range rep.Kernels[0].Programs {
		got[p.Program] = p
	}
	if a := got["sound"]; a.Actual != (boot.Actual{Outcome: "loads", Attach: "attached", EbpfGo: "odd section"}) || a.Load != rule.OK || a.Wrong != "was to load with ebpf-go, but does not" {
		t.Errorf("sound: %+v", a)
	}
	if a := got["no_guard"]; a.Actual.Outcome != "loads" || a.Load != rule.Fails || a.Wrong != "was to fail, but loads" {
		t.Errorf("no_guard: %+v", a)
	}
	if a := got["unknown_helper"]; a.Actual.Outcome != "fails" || a.Actual.Reason != "invalid func unknown#9999" || a.Actual.Errno != 22 || a.Wrong != "" {
		t.Errorf("unknown_helper: %+v", a)
	}
	if f := got["unknown_helper"].Findings; len(f) != 1 || f[0].Code != "helper-missing" || f[0].Message != "helper #9999: the kernel has no such helper [helper-missing]" {
		t.Errorf("findings of unknown_helper: %+v", f)
	}
	if _, stderr := runBoot(statusUsage, "-o", object); !strings.Contains(stderr, "broken.bpfel.o") {
		t.Errorf("an output that is an input: %s", stderr)
	}
}

// TestCheckBootFullOutput boots with standard output on a full disk.
func TestCheckBootFullOutput(t *testing.T) {
	if _, err := os.Stat("/dev/fd"); err != nil {
		t.Skip("needs /dev/fd")
	}
	_, program := bootFiles(t)
	image := bootKernel(t, "CONFIG_BPF_SYSCALL=y\n")
	fakeQEMU(t, `printf '%s\n' '@btfgen {"kind":"hello"}' '@btfgen {"kind":"object"}' '@btfgen {"kind":"program","name":"handle_exec","alone":"loads"}' `+
		`'@btfgen {"kind":"program","name":"handle_exit","alone":"loads"}' '@btfgen {"kind":"end"}'`)
	for _, format := range []string{"text", "json"} {
		args := []string{"check", "--boot", image, "--btfgen", program, "--format", format, "../../testdata/bpf/execsnoop.bpfel.o"}
		var stderr bytes.Buffer
		if got := run(t.Context(), args, io.Discard, &stderr); got != statusOK {
			t.Errorf("%s: status %d with room: %s", format, got, &stderr)
		}
		if got := run(t.Context(), args, fullDisk{}, &stderr); got != statusFailed {
			t.Errorf("%s: status %d without room: %s", format, got, &stderr)
		}
	}
}

// signals creates a file when text has been written.
type signals struct {
	bytes.Buffer
	text, file string
}

func (s *signals) Write(p []byte) (int, error) {
	n, err := s.Buffer.Write(p)
	if strings.Contains(s.String(), s.text) {
		err = os.WriteFile(s.file, nil, 0o600)
	}
	return n, err
}

// TestCheckBootStreams checks that an object's results are printed when the next object begins. The fake guest waits for the output.
func TestCheckBootStreams(t *testing.T) {
	if _, err := os.Stat("/dev/fd"); err != nil {
		t.Skip("needs /dev/fd")
	}
	_, program := bootFiles(t)
	image := bootKernel(t, "CONFIG_BPF_SYSCALL=y\n")
	dir := t.TempDir()
	stdout := &signals{text: "unknown_helper", file: filepath.Join(dir, "printed")}
	stderr := &signals{text: "vmlinuz-6.1.0-47-amd64: booting", file: filepath.Join(dir, "booting")}
	fakeQEMU(t, `until [ -e `+stderr.file+` ]; do sleep 0.01; done; printf '%s\n' '@btfgen {"kind":"hello","name":"6.1.0"}' '@btfgen {"kind":"object"}' \
		'@btfgen {"kind":"program","name":"unknown_helper","error":"no","errno":22,"log":"invalid func unknown#9999"}' '@btfgen {"kind":"object","object":1}'
		until [ -e `+stdout.file+` ]; do sleep 0.01; done
		printf '%s\n' '@btfgen {"kind":"program","name":"truth","object":1}' '@btfgen {"kind":"program","name":"late","object":1000000}' '@btfgen {"kind":"end"}'`)
	args := []string{"check", "--boot", image, "--btfgen", program, "--timeout", "3600", "-v", "../../testdata/bpf/broken.bpfel.o", "../../testdata/bpf/settings.bpfel.o"}
	if got := run(t.Context(), args, stdout, stderr); got != statusFindings {
		t.Errorf("status %d: %s", got, stderr)
	}
	matches(t, stdout.String(), `broken.bpfel.o +unknown_helper +fails +does not load`)
	matches(t, stdout.String(), `settings.bpfel.o +truth +guarded +loads`)
	if n := strings.Count(stdout.String(), "unknown_helper"); n != 1 {
		t.Errorf("the program is printed %d times: %s", n, stdout)
	}
}

// TestCheckBootSideBySide checks that kernels boot side by side, and that the report has them one after the other. In the fake guest, the
// first kernel waits for the second.
func TestCheckBootSideBySide(t *testing.T) {
	if _, err := os.Stat("/dev/fd"); err != nil {
		t.Skip("needs /dev/fd")
	}
	image, program := bootFiles(t)
	dir := filepath.Dir(image)
	for _, name := range []string{"first", "second"} {
		write(t, filepath.Join(dir, "vmlinuz-"+name), string(bzImage([]byte(name))))
	}
	ended := filepath.Join(dir, "ended")
	fakeQEMU(t, `echo '@btfgen {"kind":"hello"}'
		if grep -q first /dev/fd/3; then until [ -e `+ended+` ]; do sleep 0.01; done; fi
		grep -q second /dev/fd/3 && touch `+ended+`
		printf '%s\n' '@btfgen {"kind":"output","output":"works"}' '@btfgen {"kind":"exit"}' '@btfgen {"kind":"end"}'`)
	var stdout, stderr bytes.Buffer
	args := []string{"check", "--boot", filepath.Join(dir, "vmlinuz-first"), "--boot", filepath.Join(dir, "vmlinuz-second"), "--btfgen", program,
		"--command", program, "--jobs", "2", "--timeout", "3600"}
	if got := run(t.Context(), args, &stdout, &stderr); got != statusOK {
		t.Errorf("status %d: %s", got, &stderr)
	}
	matches(t, stdout.String(), `^\S+first:\n  works\n  tool: exit status 0\n\S+second:\n  works\n  tool: exit status 0\n$`)
}

// TestBootProgress checks that the number of programs tried is printed at intervals.
func TestBootProgress(t *testing.T) {
	var stderr bytes.Buffer
	app := newApp(io.Discard, &stderr)
	ctx, _ := withFindings(t.Context())
	c := cli.NewContext(app, nil, nil)
	c.Context = ctx
	w := &bootWatcher{c: c, printed: make(map[*boot.Kernel]time.Time)}
	k := &boot.Kernel{Name: "k", Trial: &boot.Trial{Rows: make([]boot.Row, 46)}}
	for i := range 47 {
		if i%20 == 0 {
			w.printed[k] = w.printed[k].Add(-every)
		}
		w.Progress(k, i)
	}
	if got, want := stderr.String(), "btfgen: k: booting\nbtfgen: k: 20 of 46 programs tried\nbtfgen: k: 40 of 46 programs tried\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// realKernel returns a kernel's package and a static btfgen, and the arguments of check that boot one with the other.
func realKernel(t *testing.T) (pkg, self string, args []string) {
	t.Helper()
	packages, err := filepath.Glob(filepath.Join(os.Getenv("BTFGEN_PACKAGES"), "*amd64.deb"))
	if os.Getenv("BTFGEN_PACKAGES") == "" || err != nil || len(packages) == 0 {
		t.Skip("needs BTFGEN_PACKAGES to name a directory with a kernel's .deb for amd64")
	}
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil {
		t.Skip("needs qemu-system-x86_64")
	}
	if raceflag.Enabled {
		t.Skip("skipped: it takes a minute, and has run without the race detector")
	}
	dir := t.TempDir()
	self = filepath.Join(dir, "btfgen")
	cmd := exec.Command("go", "build", "-o", self, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return packages[0], self, []string{"check", "--boot", packages[0], "--btfgen", self}
}

// bpfObjects is the folder of the objects of testdata.
const bpfObjects = "../../testdata/bpf/"

// TestCheckBootTypesOfUser boots a real kernel, and loads programs with types that the user has added. With --types nothing is predicted
// for cilium/ebpf.
func TestCheckBootTypesOfUser(t *testing.T) {
	slow.Nightly(t)
	_, _, args := realKernel(t)
	var stdout, stderr bytes.Buffer
	status := run(t.Context(), append(args, "--verbose", "--types", bpfObjects+"supplied.bpfel.o",
		bpfObjects+"supplied.bpfel.o", bpfObjects+"netprogs.bpfel.o", bpfObjects+"broken.bpfel.o"), &stdout, &stderr)
	t.Logf("%s%s", &stdout, &stderr)
	if status != statusFindings {
		t.Errorf("status %d", status)
	}
	for _, want := range []string{
		`netprogs\.bpfel\.o +xdp_count +ok +loads; attached\n`,
		`netprogs\.bpfel\.o +tc_mark +ok +loads(; attached)?\n`, // tools use netlink before 6.6
		`netprogs\.bpfel\.o +cgroup_egress +ok +loads; attached\n`,
		`netprogs\.bpfel\.o +sock_ops +ok +loads; attached\n`,
		`netprogs\.bpfel\.o +socket_filter +ok +loads; attached\n`,
		`broken\.bpfel\.o +unknown_helper +fails +does not load: invalid func unknown#9999\n`,
		`broken\.bpfel\.o +no_guard +fails +does not load: reaches an unresolved relocation\n`,
		`broken\.bpfel\.o +sound +ok +loads; attached\n`,
		`supplied\.bpfel\.o +added +ok +loads; attached\n`,
		`supplied\.bpfel\.o +asked_for +ok +loads; attached\n`,
		`supplied\.bpfel\.o +flavored +ok +loads; attached\n`,
		// It depends on the added types, too.
		`supplied\.bpfel\.o +kernels_own +fails +does not load: reaches an unresolved relocation; loads with ebpf-go\n`,
		`\n\|\S+\|libbpf loads\|(\d+/\d+\|){4}0/[12][0-9]\|\n`,
		`\n\|\S+\|ebpf-go loads\|(\d+/\d+\|){5}\n`,
		`\n\|\S+\|attached\|(\d+/\d+\|){5}\n`,
	} {
		matches(t, stdout.String(), want)
	}
	if strings.Contains(stdout.String(), "WRONG") {
		t.Error("a prediction was wrong")
	}
}

// TestCheckBoot boots a real kernel with an archive for it.
func TestCheckBoot(t *testing.T) {
	pkg, _, args := realKernel(t)
	dir := t.TempDir()
	var stdout, stderr bytes.Buffer
	report, small := filepath.Join(dir, "report.json"), filepath.Join(dir, "tracer.btfa")
	if status := run(t.Context(), []string{"generate", "--btf", pkg, "--as", "debian/12/x86_64", "-o", small,
		bpfObjects + "module.bpfel.o", bpfObjects + "netprogs.bpfel.o", bpfObjects + "broken.bpfel.o"}, io.Discard, &stderr); status != statusOK && status != statusFindings {
		t.Fatalf("status %d: %s", status, &stderr)
	}
	status := run(t.Context(), append(slices.Clone(args), "--archive", small, "--json", "-o", report,
		bpfObjects+"module.bpfel.o", bpfObjects+"netprogs.bpfel.o", bpfObjects+"broken.bpfel.o"), &stdout, &stderr)
	t.Logf("%s", &stderr)
	if status != statusFindings {
		t.Errorf("status %d", status)
	}
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	validate(t, schemas(t)["check_boot"], text)
	var got bootDocument
	if err := json.Unmarshal(text, &got); err != nil || len(got.Kernels) != 1 || len(got.Kernels[0].Modules) == 0 {
		t.Fatalf("%v: %s", err, text)
	}
	ebpfGo, attached, fail := 0, 0, 0
	for _, p := range got.Kernels[0].Programs {
		if p.Actual.Archive != boot.Same {
			t.Errorf("%s: with the archive's BTF: %q", p.Program, p.Actual.Archive)
		}
		if p.Wrong != "" {
			t.Errorf("%s: %s", p.Program, p.Wrong)
		}
		if p.Actual.Outcome == "loads" && p.Actual.EbpfGo == "" {
			ebpfGo++
		}
		if p.Actual.Attach == boot.Attached {
			attached++
		}
		if p.Load == rule.Fails && p.Actual.Outcome != "loads" {
			fail++
		}
	}
	if ebpfGo == 0 || attached < 6 || fail < 10 {
		t.Errorf("%d programs load with cilium/ebpf, %d attach, %d fail as predicted", ebpfGo, attached, fail)
	}

	// Programs without a result from the machine are reported.
	fakeQEMU(t, `echo '@btfgen {"kind":"hello"}'; echo '@btfgen {"kind":"end"}'`)
	stderr.Reset()
	status = run(t.Context(), append(args, bpfObjects+"netprogs.bpfel.o"), &stdout, &stderr)
	if status != statusFindings {
		t.Errorf("status %d", status)
	}
	matches(t, stderr.String(), `damaged: .*: no result for 6 programs: netprogs.bpfel.o:connect4 netprogs.bpfel.o:cgroup_egress and 4 more\n`)
}

// TestCheckBootTool runs a command in a real kernel.
func TestCheckBootTool(t *testing.T) {
	slow.Nightly(t)
	_, self, args := realKernel(t)
	var stdout, stderr bytes.Buffer
	status := run(t.Context(), append(args, "--command", self+" check --btf /sys/kernel/btf execsnoop.bpfel.o", bpfObjects+"execsnoop.bpfel.o"), &stdout, &stderr)
	if status != statusOK {
		t.Errorf("status %d\n%s", status, &stderr)
	}
	matches(t, stdout.String(), `(?s)\n  2 programs: .*\n  btfgen: exit status 0\n$`)
}

func matches(t *testing.T, text, pattern string) {
	t.Helper()
	if !regexp.MustCompile(pattern).MatchString(text) {
		t.Errorf("%q has nothing like %s", text, pattern)
	}
}
