// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/btfgen/btfgen/internal/output"
)

// TestPrunePackages removes the oldest packages, and nothing else: no other files, no links, and nothing that links lead to.
func TestPrunePackages(t *testing.T) {
	dir, outside, now := t.TempDir(), t.TempDir(), time.Now()
	add := func(path string, age time.Duration) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		write(t, path, "1234567890")
		if err := os.Chtimes(path, time.Time{}, now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	for name, age := range map[string]time.Duration{
		"debian/12/x86_64/a.deb": 5 * time.Hour, "debian/12/x86_64/b.deb": 4 * time.Hour, "fedora/42/arm64/c.rpm": 3 * time.Hour,
		"debian/13/x86_64/d.deb": time.Minute, "debian/13/x86_64/lists": 9 * time.Hour,
	} {
		add(filepath.Join(dir, name), age)
	}
	add(filepath.Join(outside, "mine.deb"), 9*time.Hour)
	for name, to := range map[string]string{"folder": outside, "link.deb": filepath.Join(outside, "mine.deb")} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Skip(err)
		}
	}
	left := func() (names []string) {
		for _, name := range []string{"debian/12/x86_64/a.deb", "debian/12/x86_64/b.deb", "fedora/42/arm64/c.rpm", "debian/13/x86_64/d.deb"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				names = append(names, filepath.Base(name))
			}
		}
		return names
	}
	for _, tt := range []struct {
		limit, size int64
		left        []string
	}{
		{40, 40, []string{"a.deb", "b.deb", "c.rpm", "d.deb"}},
		{25, 20, []string{"c.rpm", "d.deb"}},
		{0, 10, []string{"d.deb"}}, // d.deb is in use
	} {
		if size := prunePackages(t.Context(), dir, tt.limit, now.Add(-time.Hour)); size != tt.size || !slices.Equal(left(), tt.left) {
			t.Errorf("limit %d: %d bytes, %q", tt.limit, size, left())
		}
	}
	unlock, err := output.Lock(t.Context(), filepath.Join(dir, "debian/13/x86_64"), true, func() {})
	if err != nil {
		t.Fatal(err)
	}
	if size := prunePackages(t.Context(), dir, 0, now); size != 10 {
		t.Errorf("while the folder is locked: %d bytes", size)
	}
	unlock()
	if size := prunePackages(t.Context(), dir, 0, now); size != 0 {
		t.Errorf("when it is not: %d bytes", size)
	}
	for _, path := range []string{filepath.Join(dir, "debian/13/x86_64/lists"), filepath.Join(dir, "link.deb"), filepath.Join(outside, "mine.deb")} {
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	}
	if size := prunePackages(t.Context(), filepath.Join(dir, "none"), 0, now); size != 0 {
		t.Errorf("without a folder: %d bytes", size)
	}
}
