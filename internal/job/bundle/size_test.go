// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// TestTooMuch writes many kernels that share one BTF, as in a small archive, as files.
func TestTooMuch(t *testing.T) {
	btf := make([]byte, 1<<20)
	var kernels []archive.Kernel
	for i := range limits.BundleBytes/len(btf) + 1 {
		kernels = append(kernels, archive.Kernel{Key: kernel.Key{ID: "debian", VersionID: "12", Arch: "x86_64", Release: fmt.Sprintf("6.1.0-%d-amd64", i)}, BTF: btf})
	}
	for _, o := range []Output{{Path: "new"}, {Path: "x.tar.zst", Format: TarZst}, {Path: "x.tar.gz", Format: TarGz, Layout: Layouts[1]}} {
		o.Path = filepath.Join(t.TempDir(), o.Path)
		_, err := o.Write(t.Context(), archive.Info{}, kernels)
		if want := o.Path + ": 257 kernels would take 269.5 MB, more than the limit of 256 MiB"; err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
		if _, err := os.Stat(o.Path); !os.IsNotExist(err) {
			t.Errorf("%s exists: %v", o.Path, err)
		}
	}
}
