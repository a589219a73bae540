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

// TestImageReleases reads images whose names have another release than they themselves, or none. That of the image counts, unless the
// user names one.
func TestImageReleases(t *testing.T) {
	const dir = "debian/12/x86_64/"
	img := string(image64(compress("xz", vmlinux(blobLE))))
	for name, want := range map[string]string{
		"vmlinuz-0-rescue-0123456789abcdef": "6.1.7-test",
		"vmlinuz-6.1.6-test":                "6.1.7-test",
		"vmlinuz-6.1.7-test.old":            "6.1.7-test",
		"kernel8.img":                       "6.1.7-test",
		"vmlinuz":                           "6.1.7-test",
		"lib/modules/6.1.6/vmlinuz":         "6.1.7-test",
	} {
		for _, as := range []struct{ rule, want string }{{"", want}, {"debian/12/x86_64", want}, {"debian/12/x86_64/5.0-own", "5.0-own"}} {
			root := tree(t, map[string]string{dir + name: img})
			var opts Options
			if as.rule != "" {
				rule, err := naming.Parse(as.rule)
				if err != nil {
					t.Fatal(err)
				}
				opts.As = []*naming.Rule{rule}
			}
			_, got, errs := readAll(t, opts, root)
			if len(got) != 1 || len(errs) > 0 || got[0].Key.Release != as.want {
				t.Errorf("%s, --as %q: %v, errors %v, want %s", name, as.rule, got, errs, as.want)
			}
		}
	}
}
