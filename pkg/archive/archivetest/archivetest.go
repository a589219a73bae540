// SPDX-License-Identifier: Apache-2.0

// Package archivetest helps programs that embed an archive to test it.
package archivetest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/btfgen/btfgen/pkg/archive"
)

// Covers fails a test unless the archive in a file was made for the relocations of the
// BPF objects in other files. See [archive.Info.Covers].
//
//	func TestArchive(t *testing.T) { archivetest.Covers(t, "tracer.btfa", "tracer_bpfel.o", "tracer_bpfeb.o") }
func Covers(t testing.TB, path string, objects ...string) {
	t.Helper()
	a, err := archive.OpenFile(path)
	if err != nil {
		t.Error(err)
		return
	}
	info := a.Info()
	for _, name := range objects {
		data, err := os.ReadFile(name)
		if err == nil {
			err = info.Covers(archive.NewObject(filepath.Base(name), data))
		}
		if err != nil {
			t.Errorf("%s: %v; run btfgen generate again", path, err)
		}
	}
	if len(objects) == 0 {
		t.Error("archivetest.Covers: no objects")
	}
}
