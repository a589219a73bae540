// SPDX-License-Identifier: Apache-2.0

package examples_test

import (
	"fmt"
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

// scripts returns what a reader of a page does in each of its sections, as shell scripts. A block of shell commands is
// copied literally. A block after "Save this as `NAME`:" is written to that file.
func scripts(t *testing.T, page string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	sections := make(map[string]string)
	title, file := "", ""
	language, block := "", ""
	save := regexp.MustCompile("Save (?:this|it) as `([a-z_.]+)`:$")
	for line := range strings.Lines(string(text)) {
		fence, isFence := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "```")
		switch {
		case isFence && language == "":
			language, block = fence, ""
		case isFence && language == "sh":
			sections[title], language = sections[title]+block, ""
		case isFence && file != "":
			sections[title] += fmt.Sprintf("cat >%s <<'END OF FILE'\n%sEND OF FILE\n", file, block)
			language, file = "", ""
		case isFence:
			language = "" // a part of a program
		case language != "":
			block += line
		case strings.HasPrefix(line, "## "):
			title = strings.TrimSpace(line[3:])
		default:
			if m := save.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
				file = m[1]
			}
		}
	}
	return sections
}

// reader runs scripts in an empty folder, with an empty module cache, and without variables that configure Go or btfgen.
type reader struct {
	dir, state string // state is a script that restores the variables and the directory of the last section
	env        []string
	prelude    string
}

func newReader(t *testing.T) *reader {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	goCache := strings.TrimSpace(output(t, "go", "env", "GOCACHE"))
	home := t.TempDir()
	r := &reader{dir: t.TempDir(), state: filepath.Join(home, "state")}
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if configures := strings.HasPrefix(name, "GO") && name != "GOPROXY" && name != "GOSUMDB"; !configures &&
			!strings.HasPrefix(name, "CGO_") && !strings.HasPrefix(name, "BPF2GO_") && !strings.HasPrefix(name, "BTFGEN_") {
			r.env = append(r.env, v)
		}
	}
	// The names without a version, as the packages clang and llvm install them.
	bin := filepath.Join(home, "bin")
	if err := os.Mkdir(bin, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, tool := range []string{"clang", "llvm-strip"} {
		path, err := exec.LookPath(tool)
		if err != nil {
			path, err = exec.LookPath(tool + "-19")
		}
		if err != nil {
			t.Skip("needs " + tool)
		}
		if err := os.Symlink(path, filepath.Join(bin, tool)); err != nil {
			t.Fatal(err)
		}
	}
	// GOCACHE has what was compiled before, also in other folders if -trimpath keeps their names out of it. This only saves time.
	r.env = append(r.env, "GOENV=off", "GOFLAGS=-trimpath", "GOPATH="+filepath.Join(home, "go"), "GOCACHE="+goCache, "PATH="+bin+":"+os.Getenv("PATH")+":/usr/sbin")
	t.Cleanup(func() {
		if out, err := r.run("go clean -modcache\n"); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	r.prelude = fmt.Sprintf("git() { [ \"$*\" = 'clone https://github.com/btfgen/btfgen' ] && ln -s '%s' btfgen; }\n", root)
	if why := loadtest.Unable(); why != "" {
		t.Logf("tracers are built only; to run them the test %s", why)
		r.prelude += "sudo() { test -x \"$1\"; }\n"
	} else {
		r.prelude += "sudo() { \"$@\"; }\n"
	}
	return r
}

// run runs a script where the last one ended.
func (r *reader) run(script string) (string, error) {
	if state, err := os.ReadFile(r.state); err == nil {
		script = string(state) + script
	}
	cmd := exec.Command("sh", "-ec", r.prelude+script)
	cmd.Dir, cmd.Env = r.dir, r.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// do runs a section that must succeed, and checks what its tracers print.
func (r *reader) do(t *testing.T, section string) {
	t.Helper()
	out, err := r.run(section)
	if strings.Contains(strings.ToLower(out), "operation not permitted") {
		t.Skipf("needs a machine that lets root load programs\n%s", out)
	}
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, section, out)
	}
	if !strings.Contains(section, "sudo ") || loadtest.Unable() != "" {
		return
	}
	for _, source := range []string{"kernel", "archive"} {
		if !strings.Contains(out, "attached, with types from the "+source+"\n") {
			t.Errorf("no tracer attached with types from the %s:\n%s", source, out)
		}
	}
}

// TestTutorial does what docs/tutorial.md says, and then what docs/howto-tracers.md adds to it.
func TestTutorial(t *testing.T) {
	slow.Skip(t)
	raceflag.SkipSerial(t)
	if _, err := os.Stat(kernel.HostBTF); err != nil {
		t.Skip("needs a kernel with BTF")
	}
	needs(t, "/usr/include/bpf/bpf_core_read.h", "bpftool")
	page := scripts(t, "../docs/tutorial.md")
	r := newReader(t)
	if out, err := r.run("go list -m golang.org/x/sync@latest\n"); err != nil {
		t.Skipf("needs Go's module proxy\n%s", out)
	}
	for _, title := range []string{"1. Install btfgen", "2. Compile a BPF object", "3. Make an archive"} {
		if page[title] == "" {
			t.Fatalf("no section %q", title)
		}
		r.do(t, page[title]+"export -p >'"+r.state+"'\n")
		delete(page, title)
	}
	for title, section := range page {
		t.Run(title, func(t *testing.T) {
			switch {
			case strings.Contains(section, "libbpfgo"):
				needs(t, "gcc", "pkg-config", "/usr/include/libelf.h", "/usr/include/zlib.h")
				if out, err := exec.Command("pkg-config", "--modversion", "libbpf").Output(); err != nil || !strings.HasPrefix(string(out), "1.1.") {
					t.Skipf("needs libbpf 1.1, not %s", out)
				}
			case strings.Contains(section, "main.c"):
				needs(t, "cc", "/usr/include/libelf.h", "/usr/include/zlib.h", "/usr/include/zstd.h")
			}
			r.do(t, section)
		})
	}
	if len(page) != 3 {
		t.Errorf("%d tracers", len(page))
	}
	for title, section := range scripts(t, "../docs/howto-tracers.md") {
		t.Run(title, func(t *testing.T) { r.do(t, section) })
	}
}

// needs skips a test if a file or program is missing.
func needs(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := os.Stat(name); err == nil {
			continue
		}
		if _, err := exec.LookPath(name); err != nil {
			t.Skip("needs " + name)
		}
	}
}
