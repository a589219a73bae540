// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"encoding/binary"
	"strings"
	"testing"
)

// Distinct leaves each kernel to the first file.
func TestDistinct(t *testing.T) {
	one, two := string(btfBlob(binary.LittleEndian, "one", false)), string(btfBlob(binary.LittleEndian, "two", false))
	tarred := string(tarOf(member{"debian/12/x86_64/6.1.btf", []byte(one)}))
	for _, tt := range []struct {
		name    string
		files   map[string]string
		kept    string
		skipped string
	}{
		{"one", map[string]string{"debian/12/x86_64/6.1.btf": one, "debian/12/x86_64/6.2.btf": one}, "debian/12/x86_64/6.1.btf debian/12/x86_64/6.2.btf", ""},
		{"same", map[string]string{"a/debian/12/amd64/6.1.btf": one, "b/Debian/12/x86_64/6.1.btf.xz": string(compress("xz", []byte(one)))},
			"a/debian/12/amd64/6.1.btf", "b/Debian/12/x86_64/6.1.btf.xz: is debian/12/x86_64/6.1 again: a/debian/12/amd64/6.1.btf"},
		{"other", map[string]string{"a/amazon/2/aarch64/6.1.btf": one, "b/amzn/2/arm64/6.1.btf": two, "c/amzn/2/arm64/6.1.btf": one},
			"a/amazon/2/aarch64/6.1.btf", "b/amzn/2/arm64/6.1.btf: another kernel is amzn/2/arm64/6.1: a/amazon/2/aarch64/6.1.btf; " +
				"c/amzn/2/arm64/6.1.btf: is amzn/2/arm64/6.1 again: a/amazon/2/aarch64/6.1.btf"},
		{"damaged", map[string]string{"a/debian/12/x86_64/6.1.btf": one[:len(one)-1], "b/debian/12/x86_64/6.1.btf": one}, "a/debian/12/x86_64/6.1.btf b/debian/12/x86_64/6.1.btf", ""},
		{"found when it is read", map[string]string{"a.tar": tarred, "b/debian/12/x86_64/6.1.btf": one}, "a.tar b/debian/12/x86_64/6.1.btf", ""},
	} {
		dir := tree(t, tt.files)
		c, err := Open(context.Background(), []string{dir}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Distinct(context.Background(), 2); err != nil {
			t.Fatal(err)
		}
		var kept, skipped []string
		for _, f := range c.Files {
			kept = append(kept, strings.TrimPrefix(f.Path, dir+"/"))
		}
		for _, s := range c.Skipped {
			skipped = append(skipped, strings.ReplaceAll(s.Error(), dir+"/", ""))
		}
		if got := strings.Join(kept, " "); got != tt.kept {
			t.Errorf("%s: kept %s, want %s", tt.name, got, tt.kept)
		}
		if got := strings.Join(skipped, "; "); got != tt.skipped {
			t.Errorf("%s: skipped %s, want %s", tt.name, got, tt.skipped)
		}
		if n := len(c.Paths()); n != len(tt.files) {
			t.Errorf("%s: %d paths of %d files", tt.name, n, len(tt.files))
		}
	}
	stopped, cancel := context.WithCancel(context.Background())
	dir := tree(t, map[string]string{"a/debian/12/amd64/6.1.btf": one, "b/debian/12/amd64/6.1.btf": one})
	c, err := Open(stopped, []string{dir}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if cancel(); c.Distinct(stopped, 1) == nil {
		t.Error("goes on when it is stopped")
	}
}
