// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
	sources, err := os.ReadFile("../../packaging/copyright")
	if err != nil {
		t.Fatal(err)
	}
	debian := copyright(string(sources), modules)
	for what, text := range map[string]string{"LICENSES": licences(modules), "copyright": debian} {
		for _, name := range []string{standardLibrary, "github.com/ulikunitz/xz", "go.yaml.in/yaml/v3", "github.com/cilium/ebpf"} {
			if !strings.Contains(text, "\n"+name+" ") && !strings.Contains(text, "\nFiles: "+name+"/*\n") {
				t.Errorf("%s lacks %s", what, name)
			}
		}
	}
	for _, want := range []string{"\nCopyright: (c) 2017 Nathan Sweet\n (c) 2018, 2019 Cloudflare\n", "\nCopyright: (c) 2006-2010 Kirill Simonov\n"} {
		if !strings.Contains(debian, want) {
			t.Errorf("copyright lacks %q", want)
		}
	}
	if strings.Contains(debian, "TERMS AND CONDITIONS FOR USE") {
		t.Error("copyright contains the Apache licence, to which Debian only refers")
	}
	for paragraph := range strings.SplitSeq(strings.TrimSpace(debian), "\n\n") {
		for line := range strings.Lines(paragraph) {
			if !regexp.MustCompile(`^([A-Z][A-Za-z-]*:\s|  *\S)`).MatchString(line) {
				t.Errorf("copyright has the line %q", line)
			}
		}
	}
}
