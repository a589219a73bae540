// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/output"
)

// TestBadLists reads directories with damaged lists.
func TestBadLists(t *testing.T) {
	for text, want := range map[string]string{
		`{"made": 1, "files": []}`: "made: ",
		`{"made": {"relocations": [{"sha256_prefix": "x"}]}, "files": []}`:            "made: encoding/hex",
		`{"made": {"objects": [{"name": "a.o", "sha256_prefix": "0"}]}, "files": []}`: "made: encoding/hex",
		`{"files": ["gone.btf"]}`: "gone.btf is missing",
		`{"files": ["dir.btf"]}`:  "dir.btf is missing",
		`{"files": [`:             "not a list of files",
	} {
		dir := t.TempDir()
		if err := errors.Join(os.WriteFile(filepath.Join(dir, output.ListName), []byte(text), 0o666), os.Mkdir(filepath.Join(dir, "dir.btf"), 0o777)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := ReadKernels(context.Background(), dir); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), filepath.Join(dir, output.ListName)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
