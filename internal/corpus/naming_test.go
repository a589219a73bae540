// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/corpus/naming"
)

// Members of a file are called by their own paths.
func TestNamingOfMembers(t *testing.T) {
	btf := btfBlob(binary.LittleEndian, "x", false)
	file := filepath.Join(t.TempDir(), "kernels.tar.xz")
	if err := os.WriteFile(file, compress("xz", tarOf(member{"arm64/5.10.btf", btf}, member{"x86_64/6.1.btf", btf})), 0o666); err != nil {
		t.Fatal(err)
	}
	n, err := naming.Parse("debian/12/{arch}")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Open(context.Background(), []string{file}, Options{As: []*naming.Rule{n}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range c.Files {
		if err := f.Read(context.Background(), func(k *Kernel) error {
			got = append(got, k.Name)
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
	if want := "debian/12/arm64/5.10 debian/12/x86_64/6.1"; strings.Join(got, " ") != want {
		t.Errorf("%q, want %s", got, want)
	}
}
