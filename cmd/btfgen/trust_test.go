// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	others "github.com/btfgen/btfgen/internal/workers/program"
)

// readKeys are the keys with paths that commands only read. All others with paths are in powers.
var readKeys = []string{"archive", "archives", "base-btf", "baseline", "btf", "input", "new", "objects", "old", "os-release", "reuse", "root", "source-root", "types"}

// TestPowers wants each key with a path to be known as read or written, so that a new one is classified.
func TestPowers(t *testing.T) {
	got, used := make(map[string]bool), make(map[string]bool)
	for _, p := range topics(newApp(io.Discard, io.Discard)) {
		path := strings.TrimPrefix(p.name, "btfgen ")
		for _, k := range keys(p.Command) {
			if power := powerOf(path, k.name); power != "" {
				used[k.name] = true
				if power == writes && !k.path {
					t.Errorf("%s: %s is written, but is not a path", path, k.name)
				}
			} else if k.path {
				got[k.name] = true
			}
		}
	}
	if d := cmp.Diff(readKeys, slices.Sorted(maps.Keys(got))); d != "" {
		t.Errorf("keys that are only read (-want +got): add them here, or to powers\n%s", d)
	}
	for name := range powers {
		if fields := strings.Fields(name); !used[fields[len(fields)-1]] {
			t.Errorf("powers has %s, which no command has", name)
		}
	}
}

// hostileCheckout makes a folder with an object, a kernel and links, beside files outside it, and puts scripts in place of all programs.
// It returns the names of the programs that ran.
func hostileCheckout(t *testing.T) (ran func() []string) {
	t.Helper()
	testdata, err := filepath.Abs("../../testdata")
	if err != nil {
		t.Fatal(err)
	}
	dir, bin := t.TempDir(), t.TempDir()
	for _, name := range others.Names() {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n: >\"$0.ran\"\nexit 1\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	repo := filepath.Join(dir, "repo")
	for _, d := range []string{filepath.Join(repo, "sub"), filepath.Join(repo, ".git"), filepath.Join(dir, "outside")} {
		if err := os.MkdirAll(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(repo)
	write(t, "../outside/run.sh", "#!/bin/sh\n")
	for to, from := range map[string]string{
		"probe.bpf.o":     filepath.Join(testdata, "bpf/tcplife.bpfel.o"),
		"kernels":         filepath.Join(testdata, "vmlinux"),
		"link":            "../outside/run.sh",
		"new":             "../outside/new",
		"folder":          "../outside",
		"sub/folder":      "../folder",
		"folder.absolute": filepath.Join(dir, "outside"),
		"g":               ".git",
		"c":               ".git/config",
	} {
		if err := os.Symlink(from, to); err != nil {
			t.Fatal(err)
		}
	}
	return func() (all []string) {
		found, err := filepath.Glob(filepath.Join(bin, "*.ran"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			all = append(all, strings.TrimSuffix(filepath.Base(path), ".ran"))
			os.Remove(path)
		}
		return all
	}
}

// TestFoundConfig runs commands with a btfgen.yaml that was found and not named: it starts no program and writes nothing outside its folder.
func TestFoundConfig(t *testing.T) {
	ran := hostileCheckout(t)
	base := "objects: [probe.bpf.o]\nbtf: kernels/debian/12\n"
	outside, err := filepath.Abs("../outside/x")
	if err != nil {
		t.Fatal(err)
	}
	const folder, starts = "is outside the folder of the file", "starts programs or uses the network"
	for _, tt := range []struct{ command, yaml, at, key, want, instead string }{
		{"check", "check: {output: ../outside/run.sh}", "3:17", "output", folder, "--output ../outside/run.sh"},
		{"check", "check: {output: " + outside + "}", "3:17", "output", folder, "--output " + outside},
		{"check", "check: {output: link}", "3:17", "output", folder, "--output link"},
		{"check", "check: {output: new}", "3:17", "output", folder, "--output new"},
		{"check", "check: {output: folder/x}", "3:17", "output", folder, "--output folder/x"},
		{"check", "check: {output: sub/folder/x}", "3:17", "output", folder, "--output sub/folder/x"},
		{"check", "check: {output: folder.absolute/x}", "3:17", "output", folder, "--output folder.absolute/x"},
		{"check", "check: {output: folder/../x}", "3:17", "output", folder, "--output folder/../x"},
		{"check", "check: {output: .git/config}", "3:17", "output", "is in .git", "--output .git/config"},
		{"check", "check: {output: sub/.GIT/hooks/x}", "3:17", "output", "is in .GIT", "--output sub/.GIT/hooks/x"},
		{"check", "check: {output: g/hooks/pre-commit}", "3:17", "output", "is in .git", "--output g/hooks/pre-commit"},
		{"check", "check: {output: c}", "3:17", "output", "is in .git", "--output c"},
		{"generate", "generate: {output: g/hooks/}", "3:20", "output", "is in .git", "--output g/hooks/"},
		{"check", "check: {output: .git./hooks/x}", "3:17", "output", "is in .git.", "--output .git./hooks/x"},
		{"check", "check: {output: /dev/null}", "3:17", "output", folder, "--output /dev/null"},
		{"generate", "generate: {output: folder/new/tree/}", "3:20", "output", folder, "--output folder/new/tree/"},
		{"generate", "generate: {output: x.btfa, manifest: ../outside/m}", "3:38", "manifest", folder, "--manifest ../outside/m"},
		{"corpus extract", "corpus: {extract: {output: ../outside/}}", "3:28", "output", folder, "--output ../outside/"},
		{"corpus fetch debian/12", "corpus: {fetch: {packages: ../outside}}", "3:28", "packages", folder, "--packages ../outside"},
		{"min_core_btf", "min_core_btf: {input: kernels/x, output: ../outside/run.sh}", "3:42", "output", folder, "../outside/run.sh"},
		{"archive lookup x.btfa", "archive: {lookup: {output: link}}", "3:28", "output", folder, "--output link"},
		{"check", "check: {boot: debian/12/x86_64}", "3:15", "boot", starts, "--boot debian/12/x86_64"},
		{"check", "check: {boot: [kernels]}", "3:16", "boot", starts, "--boot kernels"},
		{"check --boot debian/12", "check: {command: ./x}", "3:18", "command", starts, "--command ./x"},
		{"check --boot debian/12", "check: {btfgen: ./x}", "3:17", "btfgen", starts, "--btfgen ./x"},
		{"check --boot debian/12", "check: {catalogue: 'evil x.yaml'}", "3:20", "catalogue", starts, "--catalogue 'evil x.yaml'"},
		{"check --boot debian/12", "mirror: http://a=http://b", "3:9", "mirror", starts, "--mirror http://a=http://b"},
		{"corpus fetch debian/12 -o x.btfc", "corpus: {fetch: {catalogue: evil.yaml}}", "3:29", "catalogue", starts, "--catalogue evil.yaml"},
		{"corpus fetch -o x.btfc", "corpus: {fetch: {series: [debian/12]}}", "3:27", "series", starts, "debian/12"},
		{"corpus pull -o x.btfc", "corpus: {pull: {reference: ghcr.io/evil/x:y}}", "3:28", "reference", starts, "ghcr.io/evil/x:y"},
		{"corpus pull ghcr.io/a/b:c -o x.btfc", "corpus: {pull: {plain-http: true}}", "3:29", "plain-http", starts, "--plain-http"},
		{"corpus push", "corpus: {push: {file: kernels.btfc, reference: ghcr.io/evil/x:y}}", "3:23", "file", starts, "kernels.btfc"},
		{"corpus import -o x.btfc", "", "2:6", "btf", starts, "kernels/debian/12"},
	} {
		t.Run(tt.command+" "+tt.yaml, func(t *testing.T) {
			write(t, configFile, base+tt.yaml+"\n")
			before := dirContent(t, "../outside")
			var stdout, stderr bytes.Buffer
			s := run(t.Context(), strings.Fields(tt.command), &stdout, &stderr)
			if s != statusUsage {
				t.Errorf("status %d, %s", s, &stderr)
			}
			if want := fmt.Sprintf("btfgen: btfgen.yaml:%s: %s: ", tt.at, tt.key); tt.at != "" && !strings.HasPrefix(stderr.String(), want) {
				t.Errorf("%swant %s", &stderr, want)
			}
			want := tt.want + ": type " + tt.instead + ", or trust the file with --config btfgen.yaml\n"
			if tt.want != "" && !strings.Contains(stderr.String(), want) {
				t.Errorf("%swant %s", &stderr, want)
			}
			if all := ran(); len(all) > 0 {
				t.Errorf("ran %s", all)
			}
			if d := cmp.Diff(before, dirContent(t, "../outside")); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestFoundConfigAll reports all settings of a file that need the user's word, in one run.
func TestFoundConfigAll(t *testing.T) {
	hostileCheckout(t)
	write(t, configFile, "min_core_btf: {input: x, output: ../outside/x}\ncheck:\n  output: ../outside/y\n  boot: [debian/12, debian/13]\n  catalogue: evil.yaml\n")
	var stdout, stderr bytes.Buffer
	run(t.Context(), []string{"check"}, &stdout, &stderr)
	var got []string
	for _, m := range regexp.MustCompile(`(?m)^btfgen: btfgen.yaml:(\S+): (\w+): `).FindAllStringSubmatch(stderr.String(), -1) {
		got = append(got, m[1]+" "+m[2])
	}
	if want := []string{"4:10 boot", "4:21 boot", "5:14 catalogue", "3:11 output"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q: %s", got, want, &stderr)
	}
}

// TestTrustedConfig names the file, by an option or in the environment, or types the settings: then they are used.
func TestTrustedConfig(t *testing.T) {
	hostileCheckout(t)
	write(t, configFile, "objects: [probe.bpf.o]\nbtf: kernels/debian/12\ncheck: {output: ../outside/report}\ngenerate: {output: sub/x.btfa, manifest: ./m.json}\n")
	call := func(want int, line string) string {
		t.Helper()
		var stdout, stderr bytes.Buffer
		if s := run(t.Context(), strings.Fields(line), &stdout, &stderr); s != want {
			t.Errorf("btfgen %s: status %d, want %d: %s", line, s, want, &stderr)
		}
		return stderr.String()
	}
	call(statusOK, "generate") // all outputs are inside the folder
	call(statusOK, "verify sub/x.btfa")
	call(statusUsage, "check")
	call(statusOK, "check --output sub/report")
	call(statusOK, "check --config btfgen.yaml")
	if _, err := os.Stat("../outside/report"); err != nil {
		t.Error(err)
	}
	os.Remove("../outside/report")
	t.Setenv("BTFGEN_CONFIG", configFile)
	call(statusOK, "check")
	if _, err := os.Stat("../outside/report"); err != nil {
		t.Error(err)
	}
	t.Setenv("BTFGEN_CONFIG", "")
	if got := call(statusUsage, "check"); !strings.Contains(got, "no BPF object given") {
		t.Errorf("with an empty BTFGEN_CONFIG: %s", got)
	}
	call(statusUsage, "check --config btfgen.yaml --select")
	t.Setenv("BTFGEN_CONFIG", "none.yaml")
	if got := call(statusUsage, "check"); !strings.HasPrefix(got, "btfgen: none.yaml: no such file") {
		t.Error(got)
	}
	call(statusOK, "check --config btfgen.yaml")
}

// TestLinkedConfig finds a btfgen.yaml that is a link: one that leads outside its folder or to data of git is not read unless the user names it.
func TestLinkedConfig(t *testing.T) {
	hostileCheckout(t)
	write(t, "../outside/private", "secret: x\n")
	write(t, ".git/config", "secret: x\n")
	write(t, "sub/own", "secret: x\n")
	for to, want := range map[string]string{
		"../outside/private": "btfgen: btfgen.yaml: is a link that leads outside its folder; to read it, use --config btfgen.yaml\n",
		"folder/private":     "btfgen: btfgen.yaml: is a link that leads outside its folder; to read it, use --config btfgen.yaml\n",
		".git/config":        "btfgen: btfgen.yaml: is a link to a file that is in .git; to read it, use --config btfgen.yaml\n",
		"sub/own":            "btfgen: btfgen.yaml:1:1: unknown key \"secret\"",
	} {
		os.Remove(configFile)
		if err := os.Symlink(to, configFile); err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{".", "sub"} {
			t.Run(to+" "+dir, func(t *testing.T) {
				t.Chdir(dir)
				want := want
				if dir != "." {
					want = strings.ReplaceAll(want, "btfgen.yaml", "../btfgen.yaml")
				}
				var stdout, stderr bytes.Buffer
				if s := run(t.Context(), []string{"check"}, &stdout, &stderr); s != statusUsage || !strings.HasPrefix(stderr.String(), want) {
					t.Errorf("status %d: %swant %s", s, &stderr, want)
				}
				if dir == "." {
					stderr.Reset()
					if run(t.Context(), []string{"check", "--config", configFile}, &stdout, &stderr); !strings.Contains(stderr.String(), `unknown key "secret"`) {
						t.Error(stderr.String())
					}
				}
			})
		}
	}
}

// TestParentConfig finds btfgen.yaml in a parent, up to the root of the repository and not in a folder that everybody may write to.
func TestParentConfig(t *testing.T) {
	hostileCheckout(t)
	write(t, configFile, "objects: [probe.bpf.o]\nbtf: kernels/debian/12\ngenerate: {output: x.btfa}\ncheck: {output: ../outside/report}\n")
	if err := os.MkdirAll("sub/deep/er", 0o777); err != nil {
		t.Fatal(err)
	}
	call := func(line string) string {
		t.Helper()
		var stdout, stderr bytes.Buffer
		run(t.Context(), strings.Fields(line), &stdout, &stderr)
		return stderr.String()
	}
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir("sub/deep")
	if got := call("generate"); !strings.Contains(got, "1 kernel") {
		t.Error(got)
	}
	if _, err := os.Stat("../../x.btfa"); err != nil {
		t.Errorf("paths are not relative to the folder of the file: %v", err)
	}
	const want = "btfgen: ../../btfgen.yaml:4:17: output: ../outside/report is outside the folder of the file: " +
		"type --output ../../../outside/report, or trust the file with --config ../../btfgen.yaml\n"
	if got := call("check"); !strings.HasPrefix(got, want) {
		t.Errorf("%swant %s", got, want)
	}
	const none = "no BPF object given"
	for _, change := range []func() error{
		func() error { return os.Mkdir(".git", 0o777) },                       // root of a repository inside the repository
		func() error { return os.WriteFile(".git", []byte("gitdir"), 0o600) }, // root of a submodule or worktree
		func() error { return os.Chmod("..", 0o777|os.ModeSticky) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if got := call("check"); !strings.Contains(got, none) {
			t.Errorf("%swant %s", got, none)
		}
		os.Remove(".git")
	}
	if err := os.Chmod("..", 0o755); err != nil {
		t.Fatal(err)
	}
	if got := call("check --config="); !strings.Contains(got, none) {
		t.Error(got)
	}
	t.Chdir(filepath.Join(root, "folder")) // outside the repository by its real path
	if got := call("check"); !strings.Contains(got, none) {
		t.Error(got)
	}
}

// dirContent returns the contents of the files in a folder.
func dirContent(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, _ := os.ReadFile(filepath.Join(dir, e.Name()))
		files[e.Name()] = string(data)
	}
	return files
}
