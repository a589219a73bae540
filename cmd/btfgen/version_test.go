// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/slow"
)

func TestVersion(t *testing.T) {
	const hash = "0123456789abcdef0123456789abcdef01234567"
	const plain = "$Format:%(describe:tags=true) %H$\n"
	main := func(version string) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}}
	}
	for _, tt := range []struct {
		name, linked string
		info         *debug.BuildInfo
		archived     string
		want         string
	}{
		{"nothing known", "", main("(devel)"), plain, "(devel)"},
		{"no build info", "", nil, plain, "(devel)"},
		{"no version in it", "", main(""), plain, "(devel)"},
		{"go install", "", main("v1.2.3"), plain, "v1.2.3"},
		{"-ldflags -X", "v1.2.4", main("(devel)"), "v1.2.3 " + hash + "\n", "v1.2.4"},
		{"tarball of a tag", "", main("(devel)"), "v1.2.3 " + hash + "\n", "v1.2.3"},
		{"tarball without tags", "", main("(devel)"), " " + hash + "\n", hash},
		{"replaced by a folder", "", &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3", Replace: &debug.Module{Path: "../btfgen"}}}, plain, "(devel)"},
		{"tarball in a repository", "", main("v1.2.4"), "v1.2.3 " + hash + "\n", "v1.2.4"},
	} {
		if got := versionFrom(tt.linked, tt.info, tt.archived); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestDistinct(t *testing.T) {
	for v, want := range map[string]bool{
		"": false, "(devel)": false, "v0.0.0-20260102030405-0123456789ab+dirty": false,
		"v0.0.0-00010101000000-000000000000": false, "v1.2.3+incompatible.dirty": false,
		"v1.2.3": true, "v0.0.0-20260102030405-0123456789ab": true,
	} {
		if got := distinct(v); got != want {
			t.Errorf("%q: %v", v, got)
		}
	}
}

// TestTarball checks that tarballs made by git archive contain the version.
func TestTarball(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	if !strings.HasPrefix(archived, "$") {
		t.Skip("needs a git repository: these sources are from a tarball")
	}
	dir := t.TempDir()
	for from, to := range map[string]string{"../../.gitattributes": ".gitattributes", "version.txt": "cmd/btfgen/version.txt"} {
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		to = filepath.Join(dir, to)
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	git := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=n", "-c", "user.email=e@example.org"}, args...)...)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %s: %v", strings.Join(args, " "), err)
		}
		return string(out)
	}
	tarball := func() string {
		git("archive", "-o", "x.tar", "HEAD")
		out, err := exec.Command("tar", "-xOf", filepath.Join(dir, "x.tar"), "cmd/btfgen/version.txt").Output()
		if err != nil {
			t.Fatal(err)
		}
		return versionFrom("", nil, string(out))
	}
	git("init", "-q")
	git("add", ".")
	git("commit", "-q", "-m", "first")
	if got, want := tarball(), strings.TrimSpace(git("rev-parse", "HEAD")); got != want {
		t.Errorf("without tags: %q, want %q", got, want)
	}
	git("tag", "v9.8.7")
	if got := tarball(); got != "v9.8.7" {
		t.Errorf("of a tag: %q", got)
	}
}

// TestLinkedVersion checks the variable that packagers set with the linker.
func TestLinkedVersion(t *testing.T) {
	slow.Skip(t)
	out, err := exec.Command(program(t), "--version").Output()
	if err != nil || string(out) != "btfgen version v1.2.3-distro\n" {
		t.Errorf("%q, %v", out, err)
	}
}
