// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTool(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	for path, mode := range map[string]os.FileMode{
		a + "/clang-9": 0o700, b + "/clang-19": 0o700, a + "/clang-20": 0o600, a + "/clang-cl-21": 0o700,
		a + "/both-3": 0o700, b + "/both": 0o700, a + "/plain": 0o700,
	} {
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", a)
	old := sbin
	sbin = []string{b}
	t.Cleanup(func() { sbin = old })
	for _, tt := range []struct{ name, want string }{
		{"plain", filepath.Join(a, "plain")},
		{"clang", filepath.Join(b, "clang-19")},
		{"both", filepath.Join(b, "both")},
	} {
		if got, err := Tool(tt.name); err != nil || got != tt.want {
			t.Errorf("Tool(%q) = %q, %v, want %q", tt.name, got, err, tt.want)
		}
	}
	got, err := Tool("absent")
	if err == nil || !strings.Contains(err.Error(), "absent: not found in "+a+", "+b) {
		t.Errorf("Tool: %q, error %v", got, err)
	}
}

func TestNeed(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	skipped := t.Run("skipped", func(t *testing.T) {
		Need(t, "no-such-program")
		t.Error("went on")
	})
	if !skipped {
		t.Error("failed instead of skipping")
	}
}

// Tests compile with the first clang that is new enough.
func TestNeedClang(t *testing.T) {
	clang := func(name, version, targets string) {
		t.Helper()
		program := "#!/bin/sh\ncase $1 in -dumpversion) echo " + version + " ;; --print-targets) echo '    " + targets + " - Description' ;; esac\n"
		if err := os.WriteFile(name, []byte(program), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	old := sbin
	t.Cleanup(func() { sbin = old })
	sbin = nil
	for _, tt := range []struct {
		name string
		have [][3]string // name, version, targets
		want string
	}{
		{"none", nil, ""},
		{"old", [][3]string{{"clang", "14.0.6", "bpf"}}, ""},
		{"oldest", [][3]string{{"clang", "15.0.6", "bpf"}}, "clang"},
		{"new and old", [][3]string{{"clang", "14.0.6", "bpf"}, {"clang-14", "14.0.6", "bpf"}, {"clang-19", "19.1.7", "bpf"}, {"clang-16", "16.0.6", "bpf"}}, "clang-19"},
		{"default", [][3]string{{"clang", "16.0.6", "bpf"}, {"clang-19", "19.1.7", "bpf"}}, "clang"},
		{"without BPF", [][3]string{{"clang", "19.1.7", "bpfel"}, {"clang-17", "17.0.0", "x86"}}, ""},
		{"not clang", [][3]string{{"clang", "", "bpf"}}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, got := t.TempDir(), ""
			t.Setenv("PATH", dir)
			for _, c := range tt.have {
				clang(filepath.Join(dir, c[0]), c[1], c[2])
			}
			skipped := true
			t.Run("need", func(t *testing.T) {
				got, skipped = NeedClang(t), false
			})
			if want := filepath.Join(dir, tt.want); skipped != (tt.want == "") || !skipped && got != want {
				t.Errorf("%q, skipped %v; want %q", got, skipped, tt.want)
			}
		})
	}
}
