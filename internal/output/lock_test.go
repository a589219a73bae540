// SPDX-License-Identifier: Apache-2.0

package output

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// TestLock checks that a locked output cannot be locked under any name, and that no file is left.
func TestLock(t *testing.T) {
	if !locks {
		t.Skip("the system has no locks")
	}
	dir := t.TempDir()
	put(t, dir, map[string]string{"x": "old", "tree/y": "y"})
	for from, to := range map[string]string{"link": "x", "way": "tree"} {
		if err := os.Symlink(to, filepath.Join(dir, from)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		held, wanted string
		other        bool
	}{
		{"x", "x", false}, {"x", "link", false}, {"link", "x", false}, {"x", "tree/../x", false}, {"new", "new", false}, {"new", "new/", false},
		{"tree", "tree/", false}, {"tree", "way", false}, {"tree/y", "way/y", false},
		{"x", "new", true}, {"x", "tree", true}, {"tree", "tree/y", true}, {"no/such", "no/such", true}, {os.DevNull, os.DevNull, true},
	} {
		at := func(name string) string {
			if filepath.IsAbs(name) {
				return name
			}
			return dir + "/" + name
		}
		mine, unlock, err := Lock(t.Context(), at(tc.held), nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		waits := 0
		_, also, err := Lock(ctx, at(tc.wanted), func() {
			waits++
			cancel()
		})
		switch {
		case tc.other && (err != nil || waits > 0):
			t.Errorf("%s waits for %s: %v", tc.wanted, tc.held, err)
		case !tc.other && (err != context.Canceled || waits != 1):
			t.Errorf("%s while %s is held: %v, waited %d times", tc.wanted, tc.held, err, waits)
		}
		if err == nil {
			also()
		}
		cancel()
		if _, again, err := Lock(mine, at(tc.wanted), nil); err != nil { // must not wait
			t.Error(err)
		} else {
			again()
		}
		unlock()
		if strays := append(leftovers(dir, making), leftovers(filepath.Join(dir, "tree"), making)...); len(strays) > 0 {
			t.Errorf("left: %q", strays)
		}
	}
}

// TestLockMade creates a directory while its output is locked.
func TestLockMade(t *testing.T) {
	if !locks {
		t.Skip("the system has no locks")
	}
	path := filepath.Join(t.TempDir(), "new")
	mine, unlock, err := Lock(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := WriteDir(mine, path, []File{{"a.btf", []byte("a")}}, nil); err != nil {
		t.Fatal(err)
	}
	unlock()
	same(t, filepath.Dir(path), map[string]string{"new/a.btf": "a", "new/" + ListName: list(t, "a.btf")})

	// A run was killed after creating the directory.
	beside := filepath.Join(filepath.Dir(path), filepath.Base(mustLockPath(t, filepath.Join(filepath.Dir(path), "gone"))))
	put(t, filepath.Dir(beside), map[string]string{filepath.Base(beside): ""})
	if err := os.Mkdir(filepath.Join(filepath.Dir(path), "gone"), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := WriteDir(t.Context(), filepath.Join(filepath.Dir(path), "gone"), nil, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(beside); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", beside, err)
	}
}

func mustLockPath(t *testing.T, path string) string {
	t.Helper()
	at, err := lockPath(path)
	if err != nil {
		t.Fatal(err)
	}
	return at
}
