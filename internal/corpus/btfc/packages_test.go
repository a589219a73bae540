// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
)

// somePackages returns a package of the first kernel of f, and one without a kernel.
func somePackages(f *File) []Package {
	return []Package{
		{Series: "debian/12/x86_64", Name: "linux-image-6.1.0-1-amd64", Version: "6.1.4-1", Sum: f.entries[0].Sum, Kernel: f.entries[0].Key},
		{Series: "debian/12/x86_64", Name: "linux-image-6.1.0-2-amd64", Version: "6.1.5-1", Reason: "has no BTF"},
	}
}

// TestPackages notes packages in a new file, replaces one of them in a second step, and adds one of a kernel that is not there.
func TestPackages(t *testing.T) {
	k := in("6.1.0-1-amd64", build(t, binary.LittleEndian, 1))
	data := written(t, nil, k)
	note := func(data []byte, packages ...Package) []byte {
		t.Helper()
		w, err := NewWriter(open(t, data), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer w.Discard()
		w.Note(packages...)
		var out bytes.Buffer
		if _, err := w.WriteTo(&out); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	if !bytes.Equal(note(data), data) {
		t.Error("a file without packages has other bytes")
	}
	want := somePackages(open(t, data))
	absent := want[0]
	absent.Name, absent.Kernel.Release = "other", "6.1.0-9-amd64"
	data = note(data, append(want, absent)...)
	want[1].Reason = "is damaged"
	data = note(data, want[1])
	f := open(t, data)
	if !slices.Equal(f.Packages(), want) {
		t.Errorf("%+v, want %+v", f.Packages(), want)
	}
	same(t, f, k)
	second(t, data, k)

	index := appendIndex(f.entries, want)
	for n := len(index) - 1; n >= len(appendIndex(f.entries, nil)); n-- {
		if _, _, err := parseIndex(index[:n], f.end); err == nil {
			t.Errorf("no error for an index cut to %d bytes", n)
		}
	}
	bad := bytes.Clone(index)
	bad[bytes.LastIndex(bad, want[0].Sum[:])+SumSize] = 9
	if _, _, err := parseIndex(bad, f.end); err == nil || err.Error() != "index: package linux-image-6.1.0-1-amd64: 9 kernels, more than 1" {
		t.Error(err)
	}
}
