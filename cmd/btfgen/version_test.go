package main

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestLinkedVersion holds the name that packagers pass to the linker.
func TestLinkedVersion(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	exe := filepath.Join(t.TempDir(), "btfgen")
	if out, err := exec.Command("go", "build", "-ldflags", "-X main.version=v1.2.3-distro", "-o", exe, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(exe, "--version").Output()
	if err != nil || string(out) != "btfgen version v1.2.3-distro\n" {
		t.Errorf("%q, %v", out, err)
	}
}
