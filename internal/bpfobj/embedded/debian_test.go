// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"bytes"
	"debug/elf"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestDebian finds the objects in Debian's packages libbpf-tools, xdp-tools and libxdp1, unpacked with dpkg -x in
// $BTFGEN_DEBIAN.
func TestDebian(t *testing.T) {
	root := os.Getenv("BTFGEN_DEBIAN")
	if root == "" {
		t.Skip("needs BTFGEN_DEBIAN")
	}
	var files, objects, big int
	core, distinct := 0, map[string]bool{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		objs, err := ReadFile(path)
		if errors.Is(err, ErrNone) {
			return nil
		}
		if err != nil {
			return err
		}
		files++
		for _, o := range objs {
			objects++
			if elf.Data(o.Data[elf.EI_DATA]) == elf.ELFDATA2MSB {
				big++
			}
			n := coreLen(t, o)
			if n > 0 {
				core++
				distinct[string(o.Data)] = true
				t.Logf("%s %q: %d bytes at %#x, %d of CO-RE relocations", filepath.Base(path), o.Name, len(o.Data), o.Offset, n)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d objects in %d files, %d big-endian; %d with CO-RE relocations, %d of them distinct",
		objects, files, big, core, len(distinct))
	if len(distinct) == 0 {
		t.Errorf("no object with CO-RE relocations below %s", root)
	}
}

// coreLen returns the size in bytes of the CO-RE relocations of o, read with debug/elf.
func coreLen(t *testing.T, o Object) int {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(o.Data))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range f.Sections {
		if s.Type == elf.SHT_NOBITS {
			continue
		}
		if _, err := s.Data(); err != nil {
			t.Errorf("section %s: %v", s.Name, err)
		}
	}
	s := f.Section(".BTF.ext")
	if s == nil {
		return 0
	}
	d, err := s.Data()
	if err != nil {
		t.Fatal(err)
	}
	// The header's third pair of offset and length; short in old objects.
	if hdrLen := f.ByteOrder.Uint32(d[4:]); hdrLen < 32 {
		return 0
	}
	n := int(f.ByteOrder.Uint32(d[28:]))
	return max(0, n-4) // the record size
}
