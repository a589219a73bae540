// SPDX-License-Identifier: Apache-2.0

package output

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLock checks that a locked output cannot be locked under any name, and that no file is left.
func TestLock(t *testing.T) {
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
		{"x", "x", false}, {"x", "link", false}, {"link", "x", false}, {"x", "tree/../x", false}, {"new", "new", false},
		{"tree/", "tree/", false}, {"tree/", "way/", false}, {"tree/y", "way/y", false}, {"made/it/", "made/it/", false},
		{"x", "new", true}, {"x", "tree/", true}, {"tree/", "tree/y", true}, {"no/such", "no/such", true}, {os.DevNull, os.DevNull, true},
	} {
		lock := func(ctx context.Context, name string, waiting func()) (func(), error) {
			if !filepath.IsAbs(name) {
				name = dir + "/" + name
			}
			return Lock(ctx, name, strings.HasSuffix(name, "/"), waiting)
		}
		unlock, err := lock(t.Context(), tc.held, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		waits := 0
		also, err := lock(ctx, tc.wanted, func() {
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
		unlock()
		for _, pattern := range []string{".btfgen.*", "tree/.btfgen.*", "new", "made/it"} {
			if strays, err := filepath.Glob(filepath.Join(dir, pattern)); len(strays) > 0 || err != nil {
				t.Errorf("left: %q, %v", strays, err)
			}
		}
	}
}
