// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/slow"
)

// somePackages returns a package of the first kernel of f, and one without a kernel.
func somePackages(f *File) []Package {
	return []Package{
		{Series: "debian/12/x86_64", Name: "linux-image-6.1.0-1-amd64", Version: "6.1.4-1", Sum: f.entries[0].Sum, Kernel: f.entries[0].Key},
		{Series: "debian/12/x86_64", Name: "linux-image-6.1.0-2-amd64", Version: "6.1.5-1", Reason: "has no BTF"},
	}
}

// TestPackages notes packages in a new file, replaces one of them in a second step, and adds one of a missing kernel.
func TestPackages(t *testing.T) {
	slow.Skip(t)
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

	index := indexOf(t, f.entries, want)
	for n := bytes.IndexByte(index, '\n') + 2; n < len(index); n++ {
		whole := index[n-1] == '\n' || index[n] == '\n'
		if _, _, err := parseIndex(index[:n], f.end); whole != (err == nil) {
			t.Errorf("index cut to %d bytes: error %v", n, err)
		}
	}
	want[0].Kernel.Release = "6.1.0-9-amd64"
	line := indexOf(t, []*Entry{{Key: want[0].Kernel}}, want[:1])
	line = line[bytes.IndexByte(line, '\n')+1:]
	if _, _, err := parseIndex(slices.Concat(index, line), f.end); err == nil ||
		err.Error() != "index: package linux-image-6.1.0-1-amd64: no kernel debian/12/x86_64/6.1.0-9-amd64" {
		t.Error(err)
	}
}

func indexOf(t testing.TB, entries []*Entry, packages []Package) []byte {
	t.Helper()
	index, err := appendIndex(entries, packages)
	if err != nil {
		t.Fatal(err)
	}
	return index
}
