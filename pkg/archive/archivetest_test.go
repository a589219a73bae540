// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/archive/archivetest"
)

// recorder is a test that notes its errors.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Helper()                           {}
func (r *recorder) Error(args ...any)                 { r.errors = append(r.errors, fmt.Sprint(args...)) }
func (r *recorder) Errorf(format string, args ...any) { r.Error(fmt.Sprintf(format, args...)) }

func TestArchivetest(t *testing.T) {
	const exec, shapes = "../../testdata/bpf/execsnoop.bpfel.o", "../../testdata/bpf/shapes.bpfel.o"
	data, err := os.ReadFile(exec)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.btfa")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := archive.Write(t.Context(), f, archive.Info{Objects: []archive.Object{archive.NewObject("execsnoop.bpf.o", data)}}, nil); err != nil {
		t.Fatal(err)
	}
	f.Close()
	archivetest.Covers(t, path, exec)
	for _, tt := range []struct {
		path, want string
		objects    []string
	}{
		{path, "archive was made for execsnoop.bpf.o (sha256 ", []string{exec, shapes}},
		{path, "no such file", []string{"none.o"}},
		{path, "no objects", nil},
		{"none.btfa", "no such file", []string{exec}},
		{exec, "not a btfgen archive", []string{exec}},
	} {
		r := &recorder{TB: t}
		if archivetest.Covers(r, tt.path, tt.objects...); len(r.errors) != 1 || !strings.Contains(r.errors[0], tt.want) {
			t.Errorf("%s %v: errors %q, want %q", tt.path, tt.objects, r.errors, tt.want)
		}
	}
}
