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
