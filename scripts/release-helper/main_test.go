// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestNoLicence checks that a module without a licence is refused.
func TestNoLicence(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "README"), []byte("Permission is hereby granted"), 0o666); err != nil {
		t.Fatal(err)
	}
	m := &module{Path: "example.org/m", Version: "v1.0.0", Dir: dir}
	if err := m.readLicences(); err == nil || !strings.Contains(err.Error(), "example.org/m@v1.0.0") {
		t.Error(err)
	}
}

// TestRelease describes btfgen.
func TestRelease(t *testing.T) {
	program := filepath.Join(t.TempDir(), "btfgen")
	if out, err := exec.Command("go", "build", "-o", program, "../../cmd/btfgen").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	modules, err := linked([]string{program})
	if err != nil {
		t.Skipf("needs Go's sources and the module cache: %v", err)
	}
	text := licences(modules)
	for _, name := range []string{standardLibrary, "github.com/ulikunitz/xz", "go.yaml.in/yaml/v3", "github.com/cilium/ebpf"} {
		if !strings.Contains(text, "\n"+name+" ") {
			t.Errorf("%s is missing", name)
		}
	}
	for _, want := range []string{"Copyright (c) 2017 Nathan Sweet", "Copyright (c) 2006-2010 Kirill Simonov"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
}
