// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/testminimized"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

func bpfObject(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("../../testdata/bpf/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// madeFor returns an archive of one kernel for some objects.
func madeFor(t testing.TB, objects ...archive.Object) *archive.Archive {
	t.Helper()
	var b bytes.Buffer
	k := testminimized.Kernels(t)[0]
	k.Key = mustKey(t, "debian/12/x86_64/6.1.0-9-amd64")
	if err := archive.Write(t.Context(), &b, archive.Info{Objects: objects}, []archive.Kernel{k}); err != nil {
		t.Fatal(err)
	}
	return mustOpen(t, b.Bytes())
}

func TestCovers(t *testing.T) {
	raceflag.SkipSerial(t)
	exec, shapes, x86 := bpfObject(t, "execsnoop.bpfel.o"), bpfObject(t, "shapes.bpfel.o"), bpfObject(t, "tool.bpfel.o")
	noFingerprint := archive.NewObject("exec.bpf.o", exec)
	noFingerprint.Fingerprint = nil
	otherCode := append(bytes.Clone(exec), 0) // another SHA-256, the same relocations
	made := []archive.Object{archive.NewObject("exec.bpf.o", exec), archive.NewObject("tool.bpf.o", x86, "x86_64")}
	for _, tt := range []struct {
		name   string
		made   []archive.Object
		object archive.Object
		want   string
	}{
		{"same", made, archive.NewObject("exec.bpf.o", exec), ""},
		{"other name", made, archive.NewObject("e.bpf.o", exec), ""},
		{"other code", made, archive.NewObject("exec.bpf.o", otherCode), ""},
		{"its machine", made, archive.NewObject("tool.bpf.o", x86, "amd64"), ""},
		{"any machine", made, archive.NewObject("tool.bpf.o", x86), ""},
		{"no relocations", made, archive.NewObject("none.bpf.o", bpfObject(t, "norelo.bpfel.o")), ""},
		{"other machine", made, archive.NewObject("tool.bpf.o", x86, "arm64"), "the archive's object is for other machines"},
		{"other relocations", made, archive.NewObject("shapes.bpf.o", shapes), "archive was made for exec.bpf.o (sha256 "},
		{"other byte order", made, archive.NewObject("exec.bpf.o", bpfObject(t, "execsnoop.bpfeb.o")), "its relocations differ"},
		{"not an object", made, archive.NewObject("x.o", []byte("x")), "its relocations cannot be read"},
		{"without fingerprints", []archive.Object{noFingerprint}, archive.NewObject("exec.bpf.o", exec), ""},
		{"without fingerprints, other file", []archive.Object{noFingerprint}, archive.NewObject("exec.bpf.o", otherCode), "the archive has no fingerprints"},
		{"one without fingerprint", []archive.Object{noFingerprint, made[1]}, archive.NewObject("tool.bpf.o", append(bytes.Clone(x86), 0)), "the archive has no fingerprints"},
		{"no objects", nil, archive.NewObject("exec.bpf.o", exec), "archive was made for unknown objects, not for exec.bpf.o (sha256 "},
	} {
		err := madeFor(t, tt.made...).Covers(tt.object)
		if tt.want == "" && err == nil {
			continue
		}
		var not *archive.NotCoveredError
		if tt.want == "" || !errors.As(err, &not) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
		}
	}
}

// TestFindObject looks up types for an object: an archive that was made for another one is an error.
func TestFindObject(t *testing.T) {
	exec, shapes := bpfObject(t, "execsnoop.bpfel.o"), bpfObject(t, "shapes.bpfel.o")
	opts := archive.FindOptions{
		Archive: madeFor(t, archive.NewObject("exec.bpf.o", exec)), IgnoreKernel: true, Object: exec,
		Host: kernel.HostOptions{OSRelease: "../kernel/testdata/os-release/debian", Release: "6.1.0-9-amd64", Arch: "x86_64"},
	}
	if types, err := archive.Find(opts); err != nil || types.Source != archive.FromArchive {
		t.Errorf("its own object: %+v, %v", types, err)
	}
	opts.Object = shapes
	_, err := archive.Find(opts)
	var not *archive.NotCoveredError
	if !errors.As(err, &not) || not.Object.Name != "" || len(not.Made) != 1 || !strings.Contains(err.Error(), "not for the object (sha256 ") {
		t.Errorf("another object: %v", err)
	}
}
