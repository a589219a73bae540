// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	cbtf "github.com/cilium/ebpf/btf"

	others "github.com/btfgen/btfgen/internal/workers/program"
)

// caseRun is a run of the commands of a case.
type caseRun struct {
	dir    string // folder of the case
	output string // output of all commands, with a line such as "[btfgen check: 3]" after each btfgen
	memory int64  // bytes of the largest process
}

// caseTests says what should happen in each folder of $BTFGEN_CASES, a collection of small inputs with a file cmd of commands, on which
// btfgen once failed.
var caseTests = map[string]func(t *testing.T, c *cases){
	"bomb": func(t *testing.T, c *cases) {
		if err := os.Mkdir(filepath.Join(c.dir, "bomb/k"), 0o777); err != nil {
			t.Fatal(err)
		}
		r := c.run(t, "bomb")
		r.want(t, `(?m)(^btfgen: damaged: k/6\.\d\.btf\.gz: .* unpacks to more than .*\n){8}`, `\[btfgen corpus import: 1\]`)
		if r.memory > 1<<30 {
			t.Errorf("%d MB of memory", r.memory>>20)
		}
		r.absent(t, "o.btfc")
		r = c.commands(t, "bomb", "btfgen generate -j 8 --btf k --as debian/12/x86_64/{release} -o o.btfa "+c.testdata+"/bpf/tcplife.bpfel.o")
		r.want(t, `\[btfgen generate: 1\]`)
		if r.memory > 1<<30 {
			t.Errorf("%d MB of memory", r.memory>>20)
		}
		r.absent(t, "o.btfa")
	},
	"btf-base-ko": func(t *testing.T, c *cases) {
		r := c.run(t, "btf-base-ko")
		r.want(t, `rc=0`)
		data, err := os.ReadFile(filepath.Join(r.dir, "out/m1"))
		if err == nil {
			_, err = cbtf.LoadSpecFromReader(bytes.NewReader(data))
		}
		if err != nil {
			t.Error(err)
		}
	},
	"btfgen-yaml": func(t *testing.T, c *cases) {
		r := c.run(t, "btfgen-yaml")
		r.want(t, `boot: starts programs`, `catalogue: starts programs`, `output: \.\./outside\.sh is outside the folder`, `\[btfgen check: 2\]`,
			`output: \.\./outside\.btfa is outside`, `manifest: \.\./m\.rc is outside`, `\[btfgen generate: 2\]`)
		r.absent(t, "../outside.sh", "../outside.btfa", "../m.rc")
	},
	"c-error": func(t *testing.T, c *cases) {
		if _, err := os.Stat("/usr/include/zstd.h"); err != nil {
			t.Skip("needs libzstd-dev")
		}
		c.link(t, "../../lib", "c-error/lib")
		c.link(t, "../../testdata/bpf/execsnoop.bpfel.o", "c-error/execsnoop.bpfel.o")
		r := c.run(t, "c-error")
		lines := strings.Split(strings.TrimSuffix(r.output, "\n"), "\n")
		if len(lines) != 2 || lines[0] != "0" || !regexp.MustCompile(`^-?\d+ [ -\]_-~]+$`).MatchString(strings.ReplaceAll(lines[1], "M-bM-^@M-&", "")) { // an ellipsis
			t.Errorf("%q, want two lines, without what cat -v writes with ^", lines)
		}
	},
	"catalogue": func(t *testing.T, c *cases) {
		r := c.run(t, "catalogue")
		r.want(t, `btfgen\.yaml:\d+:\d+: catalogue: starts programs or uses the network`, `\[btfgen corpus fetch: 2\]`)
		typed := c.commands(t, "catalogue", `
btfgen corpus fetch debian/12/x86_64 --newest 1 --dry-run -o x.btfc --catalogue evil.yaml
btfgen corpus fetch debian/12/x86_64 --newest 1 --dry-run -o x.btfc --config btfgen.yaml
btfgen corpus fetch debian/12/x86_64 --newest 1 --packages p --catalogue evil.yaml
btfgen check --boot debian/12/x86_64 --catalogue evil.yaml `+c.testdata+`/bpf/tcplife.bpfel.o`)
		typed.want(t, `(?s)(evil\.yaml: [^\n]*-cevil\.conf[^[]*\[btfgen [a-z ]*: 2\]\nbtfgen: ){3}evil\.yaml: .*\[btfgen check: 2\]`)
		r.absent(t, "EXECUTED", "x.btfc", "p")
		if programs := c.started(); len(programs) > 0 {
			t.Errorf("%v ran", programs)
		}
	},
	"cilium-modules": func(t *testing.T, c *cases) {
		r := c.run(t, "cilium-modules")
		r.want(t, `0 differences`, `cj b\.o sys/kernel/btf/vmlinux sys/kernel/btf/mod\n.*byte_off=4->8`)
		if lines := regexp.MustCompile(`(?m)^.*byte_off.*$`).FindAllString(r.output, -1); len(lines) != 2 || lines[0] != lines[1] {
			t.Errorf("cilium/ebpf decides %q with all BTF and with the output", lines)
		}
		r = c.commands(t, "cilium-modules", `
btfgen generate --btf sys --as debian/12/x86_64/6.1 -o a/ a.o
btfgen verify --btf sys --as debian/12/x86_64/6.1 a a.o
cj a.o sys/kernel/btf/vmlinux sys/kernel/btf/mod
[ ! -e a/debian/12/x86_64/6.1.btf ] || cj a.o a/debian/12/x86_64/6.1.btf`)
		if n := strings.Count(r.output, "ambiguous relocation"); n < 2 && !strings.Contains(r.output, "ambiguous: a.o on debian/12/x86_64/6.1") {
			t.Errorf("a.o is ambiguous with all BTF; the output has to be so, too, or the kernel to be named\n%s", r.output)
		}
	},
	"import-accepts-invalid": func(t *testing.T, c *cases) {
		c.run(t, "import-accepts-invalid").want(t, `damaged: bad/debian/12/x86_64/6\.1\.0-1-amd64\.btf: .*type 9 .* refers to type 999`, `rc=1`,
			`1 added .*now 1 kernel`, `rc=0`, `1 kernel, 1 distinct layout`, `rc=0`)
	},
	"loaders": func(t *testing.T, c *cases) {
		verdicts := c.check(t, "loaders", c.testdata+"/vmlinux/debian/12/x86_64", "libbpf")
		maps.Copy(verdicts, c.check(t, "loaders", c.testdata+"/vmlinux/debian/12/x86_64", "ebpf-go"))
		for key, want := range map[string]string{"libbpf pin p": "fails", "ebpf-go pin p": "fails", "libbpf sec p": "fails", "ebpf-go sec p": "ok"} {
			if got := slices.Compact(slices.Collect(maps.Values(verdicts[key]))); !slices.Equal(got, []string{want}) {
				t.Errorf("%s: %v, want %s", key, got, want)
			}
		}
	},
	"old-verifiers": func(t *testing.T, c *cases) {
		corpus := os.Getenv("BTFGEN_CORPUS")
		if corpus == "" {
			t.Skip("needs BTFGEN_CORPUS, with kernels before 5.10")
		}
		verdicts := c.check(t, "old-verifiers", corpus, "libbpf", "--select", "release<6.2")
		mainline, rhel := "kylin/V10/arm64/4.19.90-24.4.v2101.ky10.aarch64", "bclinux/21.10U3/x86_64/4.19.90-2107.6.0.0248.35.oe1.bclinux.x86_64"
		bullseye, bookworm := "debian/11/x86_64/5.10.0-30-amd64", "debian/12/x86_64/6.1.0-47-amd64"
		for program, want := range map[string]map[string]string{ // results on booted kernels; a verdict by release alone is "may fail"
			"args many":             {mainline: "fails", rhel: "fails", bullseye: "fails", bookworm: "fails"},
			"frags frags":           {mainline: "fails", rhel: "fails", bullseye: "fails"},
			"global global":         {mainline: "fails", rhel: "fails", bullseye: "ok"},
			"loop loops":            {mainline: "fails", rhel: "fails", bullseye: "ok"},
			"loopx loops":           {mainline: "fails", rhel: "fails", bullseye: "ok"},
			"ops ssthresh":          {mainline: "fails", rhel: "fails", bullseye: "fails", bookworm: "fails"},
			"opsmember cong_avoid2": {mainline: "fails", rhel: "fails", bullseye: "fails", bookworm: "fails"},
			"skmsg msg":             {mainline: "may fail", rhel: "may fail", bullseye: "ok"},
			"spill spill":           {mainline: "fails", rhel: "fails", bullseye: "guarded"},
			"tpbtf needs_btf":       {mainline: "fails", rhel: "fails"},
			"tpbtf needs_btf2":      {mainline: "fails", rhel: "fails"},
			"usleep sleepy":         {mainline: "fails", rhel: "fails", bullseye: "fails"},
		} {
			for kernel, want := range want {
				if got := verdicts["libbpf "+program][kernel]; got != want {
					t.Errorf("%s on %s: %q, want %s", program, kernel, got, want)
				}
			}
		}
	},
	"one-bad-module": func(t *testing.T, c *cases) {
		r := c.run(t, "one-bad-module")
		r.want(t, `error: .*/foreign\.btf: `, `damaged: .*/foreign\.btf: module left out`, `ambiguous: mod\.o on .* byte_off struct bar\.z`, `1 kernel, 1 distinct layout`, `rc=3`,
			`damaged: .*/foreign\.btf: module left out`, `1 resolved, 1 ambiguous`, `rc=3`)
	},
	"refused": func(t *testing.T, c *cases) {
		pairs, err := filepath.Glob(filepath.Join(c.dir, "refused/*/obj.o"))
		if err != nil || len(pairs) == 0 {
			t.Fatalf("%v: no pairs", err)
		}
		for _, obj := range pairs {
			r := c.commands(t, filepath.Join("refused", filepath.Base(filepath.Dir(obj))), `
btfgen generate --btf full.btf --as '*=debian/12/x86_64/6.1' -o out/ obj.o
btfgen verify --btf full.btf --as '*=debian/12/x86_64/6.1' out obj.o
btfgen min_core_btf full.btf min.btf obj.o`)
			r.want(t, `1 kernel, 1 distinct layout`, `\[btfgen generate: [03]\]`, ` 0 differences`, `\[btfgen verify: 0\]`, `\[btfgen min_core_btf: [03]\]`)
			if strings.Contains(r.output, "decides differently") {
				t.Error(r.output)
			}
		}
	},
	"syscalls-tp-record": func(t *testing.T, c *cases) {
		if _, err := os.Stat(filepath.Join(c.dir, "../corpus/debian-packages")); err != nil {
			t.Skip("needs the corpus beside the cases")
		}
		c.run(t, "syscalls-tp-record").want(t, `5 programs: 4 fail, 1 ok`, `which has 24 bytes on this kernel \(.*\) \[context-beyond-record\]`, `\[btfgen check: 3\]`,
			`1 program: 1 fails`, `which has 16 bytes on this kernel \(.*\) \[context-beyond-record\]`, `\[btfgen check: 3\]`)
	},
	"two-modules-ambiguous": func(t *testing.T, c *cases) {
		r := c.run(t, "two-modules-ambiguous")
		r.want(t, `program: 1 may fail`, `rc=0`, `program: 1 may fail`, `only where modules cxgb3 and cxgb4 are loaded together`, `rc=0`, `ambiguous: adap\.o on .*--modules chooses`, `rc=3`)
		c.commands(t, "two-modules-ambiguous", `
btfgen check --btf both --modules cxgb4 adap.o
btfgen generate --btf both --modules cxgb4 -o chosen/ adap.o`).want(t, `\[btfgen check: 0\]`, `\[btfgen generate: 0\]`)
	},
	"wrong-object-hints": func(t *testing.T, c *cases) {
		r := c.run(t, "wrong-object-hints")
		r.want(t, `simple\.bc: .*LLVM bitcode; compile without -flto`, `host\.o: .*an object for x86_64; compile it for BPF`, `gcc2\.o: no \.BTF section, only DWARF: compile with`,
			`stripall\.o: no \.BTF section: .*llvm-strip -g`, `simple\.bpf\.o\.gz: .*compressed with gzip; decompress`, `package\.json: .*text; name the compiled object`,
			`uselsk: .*light skeleton; name the object`, `lfs\.btf: .*Git LFS pointer; fetch`)
		if n := strings.Count(r.output, "[btfgen min_core_btf: 1]"); n != 7 {
			t.Errorf("%d of 7 objects were refused", n)
		}
		r.absent(t, "out/m1")
	},
}

// TestCases runs the unchanged commands of all cases in a copy of their folders.
func TestCases(t *testing.T) {
	from := os.Getenv("BTFGEN_CASES")
	if from == "" {
		t.Skip("needs BTFGEN_CASES, a folder of inputs that once failed")
	}
	testFolders(t, from, caseTests)
}

// testFolders runs the test of each folder in a copy. Each folder needs a test, and each test a folder.
func testFolders(t *testing.T, from string, tests map[string]func(t *testing.T, c *cases)) {
	t.Helper()
	c := newCases(t, from)
	folders, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	left := maps.Clone(tests)
	for _, f := range folders {
		if !f.IsDir() {
			continue
		}
		test := left[f.Name()]
		delete(left, f.Name())
		t.Run(f.Name(), func(t *testing.T) {
			if test == nil {
				t.Fatal("no test says what should happen")
			}
			test(t, c)
		})
	}
	for name := range left {
		t.Errorf("%s has no folder %s", from, name)
	}
}

// cases is a copy of the cases.
type cases struct {
	dir, testdata string
	bin           string // folder of btfgen, cj, and programs that leave a trace when they run
}

func newCases(t *testing.T, from string) *cases {
	t.Helper()
	root := t.TempDir()
	c := &cases{dir: filepath.Join(root, "cases"), bin: filepath.Join(root, "bin")}
	var err error
	if c.testdata, err = filepath.Abs("../../testdata"); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(c.dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	if err := filepath.WalkDir(c.dir, func(path string, d os.DirEntry, err error) error { // the cases may be read-only
		if err == nil && d.IsDir() {
			if err = os.Chmod(path, 0o755); err == nil && path == filepath.Join(c.dir, filepath.Base(path)) {
				err = os.MkdirAll(filepath.Join(path, "out"), 0o755)
			}
		} else if err == nil {
			err = os.Chmod(path, 0o755)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if corpus, err := filepath.Abs(filepath.Join(from, "../corpus")); err == nil {
		_ = os.Symlink(corpus, filepath.Join(root, "corpus"))
	}
	btfgen, err := exec.LookPath("btfgen")
	if err != nil {
		t.Fatal(err)
	}
	cj, err := exec.LookPath("cj")
	if err != nil {
		t.Fatal(err)
	}
	scripts := map[string]string{
		"btfgen": fmt.Sprintf("#!/bin/sh\n%s \"$@\"; s=$?\ncase $1 in corpus|archive) set -- \"$1 $2\";; esac\necho \"[btfgen $1: $s]\"; exit $s\n", btfgen),
		"cj":     fmt.Sprintf("#!/bin/sh\necho cj \"$@\"\n%s \"$@\"\n", cj),
	}
	for _, name := range others.Names() {
		scripts[name] = "#!/bin/sh\n: >\"$0.ran\"\nexit 1\n"
	}
	for name, text := range scripts {
		write(t, filepath.Join(c.bin, name), text)
		if err := os.Chmod(filepath.Join(c.bin, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// link makes a link in the cases to a file of the repository.
func (c *cases) link(t *testing.T, to, name string) {
	t.Helper()
	to, err := filepath.Abs(to)
	if err == nil {
		err = os.Symlink(to, filepath.Join(c.dir, name))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// run runs the file cmd of a folder.
func (c *cases) run(t *testing.T, folder string) *caseRun {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(c.dir, folder, "cmd"))
	if err != nil {
		t.Fatal(err)
	}
	return c.commands(t, folder, string(text))
}

// commands runs commands of a shell in a folder.
func (c *cases) commands(t *testing.T, folder, text string) *caseRun {
	t.Helper()
	r := &caseRun{dir: filepath.Join(c.dir, folder)}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", text)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "PATH="+c.bin+":"+os.Getenv("PATH"), "XDG_CACHE_HOME="+filepath.Join(c.dir, "cache"), "GOMAXPROCS=2", "PWD="+r.dir, "TESTDATA="+c.testdata, "PROJECT="+filepath.Dir(c.testdata))
	out, err := cmd.CombinedOutput()
	if e := (*exec.ExitError)(nil); err != nil && !errors.As(err, &e) {
		t.Fatal(err)
	}
	r.output = string(out)
	r.memory = memoryOf(cmd.ProcessState)
	if strings.Contains(r.output, "panic") || strings.Contains(r.output, "in btfgen: please report") {
		t.Errorf("%s", r.output)
	}
	return r
}

// memoryOf returns how many bytes the largest of an ended process and its children had, 0 if that may be what this process had when it
// started them: Linux counts that for the child as well.
func memoryOf(p *os.ProcessState) int64 {
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		return 0
	}
	if most := p.SysUsage().(*syscall.Rusage).Maxrss; most > own.Maxrss {
		return int64(most) << 10
	}
	return 0
}

// started returns the programs other than btfgen that ran.
func (c *cases) started() (all []string) {
	for _, name := range others.Names() {
		if _, err := os.Stat(filepath.Join(c.bin, name+".ran")); err == nil {
			all = append(all, name)
		}
	}
	return all
}

// want wants texts in the output, in this order. Each is a regular expression.
func (r *caseRun) want(t *testing.T, texts ...string) {
	t.Helper()
	rest := r.output
	for _, text := range texts {
		at := regexp.MustCompile(text).FindStringIndex(rest)
		if at == nil {
			t.Errorf("no %s in\n%s", text, rest)
			return
		}
		rest = rest[at[1]:]
	}
}

// absent wants files not to exist.
func (r *caseRun) absent(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := os.Lstat(filepath.Join(r.dir, name)); err == nil {
			t.Errorf("%s exists", name)
		}
	}
}

// check compiles the sources of a folder and checks them with a loader. It returns the verdicts by "LOADER FILE PROGRAM" and kernel.
func (c *cases) check(t *testing.T, folder, corpus, loader string, more ...string) map[string]map[string]string {
	t.Helper()
	clang, err := exec.LookPath("clang-19")
	if err != nil {
		t.Skip("needs clang-19")
	}
	sources, err := filepath.Glob(filepath.Join(c.dir, folder, "*.bpf.c"))
	if err != nil || len(sources) == 0 {
		t.Fatalf("%v: no sources", err)
	}
	args := append([]string{"check", "--json", "--loader", loader, "--btf", corpus}, more...)
	for _, s := range sources {
		o := strings.TrimSuffix(s, ".c") + ".o"
		machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
		compile := exec.Command(clang, "-g", "-O2", "--target=bpf", "-mcpu=v2", "-I/usr/include/"+machine+"-linux-gnu", "-c", s, "-o", o)
		if out, err := compile.CombinedOutput(); err != nil {
			t.Skipf("needs libbpf-dev: %v\n%s", err, out)
		}
		args = append(args, o)
	}
	var stdout, stderr bytes.Buffer
	if s := run(t.Context(), args, &stdout, &stderr); s != statusFindings {
		t.Fatalf("status %d: %s", s, &stderr)
	}
	var report struct {
		Kernels  []struct{ Name string }
		Programs []struct {
			Object, Program string
			Status          []string
		}
	}
	if err := json.Unmarshal(stdout.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	verdicts := make(map[string]map[string]string)
	for _, p := range report.Programs {
		on := make(map[string]string)
		for k, status := range p.Status {
			on[report.Kernels[k].Name] = status
		}
		name, _, _ := strings.Cut(p.Object, ".")
		verdicts[loader+" "+name+" "+p.Program] = on
	}
	return verdicts
}
