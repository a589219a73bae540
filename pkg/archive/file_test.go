// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/testminimized"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

func TestFile(t *testing.T) {
	btf := testminimized.Kernels(t)[0].BTF
	f, err := (&archive.Types{Source: archive.FromArchive, BTF: btf}).File()
	if err != nil {
		t.Fatal(err)
	}
	path := f.Path()
	for range 2 { // each reader begins at the beginning
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, btf) {
			t.Errorf("%s: %d of %d bytes (%v)", path, len(got), len(btf), err)
		}
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(path); err == nil && bytes.Equal(got, btf) {
		t.Errorf("%s is there after Close", path)
	}
}

func TestFileOfOthers(t *testing.T) {
	for _, tt := range []struct {
		types archive.Types
		want  string
	}{
		{archive.Types{Source: archive.FromFile, Path: "some/file"}, "some/file"},
		{archive.Types{Source: archive.FromKernel, Path: kernel.HostBTF}, ""},
	} {
		f, err := tt.types.File()
		if err != nil || f.Path() != tt.want {
			t.Errorf("%s: %v, %v", tt.types.Source, f, err)
			continue
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestFileWithLibbpf reads the file with bpftool, which uses libbpf.
func TestFileWithLibbpf(t *testing.T) {
	bpftool, err := exec.LookPath("bpftool")
	if err != nil {
		t.Skip("needs bpftool")
	}
	f, err := archive.NewFile(testminimized.Kernels(t)[0].BTF)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	path := strings.Replace(f.Path(), "/self/", fmt.Sprintf("/%d/", os.Getpid()), 1) // bpftool is another process
	out, err := exec.Command(bpftool, "btf", "dump", "file", path).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "'task_struct'") {
		t.Errorf("%s: %v\n%s", path, err, out)
	}
}

// TestTemporaryFile tests NewFile on systems without files in memory.
func TestTemporaryFile(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	f, err := archive.TemporaryFile([]byte("btf"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(f.Path()); err != nil || string(got) != "btf" || filepath.Dir(f.Path()) != dir {
		t.Errorf("%s: %q, %v", f.Path(), got, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	t.Setenv("TMPDIR", filepath.Join(dir, "none"))
	if _, err := archive.TemporaryFile(nil); err == nil {
		t.Error("a file in no directory")
	}
}
