// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/testminimized"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

func TestFind(t *testing.T) {
	a := lookupArchive(t)
	dir := t.TempDir()
	named, none := filepath.Join(dir, "named.btf"), filepath.Join(dir, "none.btf")
	if err := os.WriteFile(named, testminimized.Kernels(t)[0].BTF, 0o666); err != nil {
		t.Fatal(err)
	}
	hit := kernel.HostOptions{OSRelease: "../kernel/testdata/os-release/debian", Release: "6.1.0-9-amd64", Arch: "x86_64"}
	miss := hit
	miss.Release = "6.1.0-11-amd64"

	got, err := archive.Find(archive.FindOptions{File: named, Archive: a, Host: hit})
	if err != nil || got.Source != archive.FromFile || got.Path != named || got.BTF != nil {
		t.Errorf("file: %+v, %v", got, err)
	}
	got, err = archive.Find(archive.FindOptions{Archive: a, Host: hit, IgnoreKernel: true})
	if err != nil || got.Source != archive.FromArchive || got.Match.Rule != archive.ExactMatch || !bytes.Equal(got.BTF, testminimized.Kernels(t)[0].BTF) {
		t.Errorf("archive: %+v, %v", got, err)
	}
	if _, err = archive.Find(archive.FindOptions{File: none, Archive: a, Host: hit}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there was passed over: %v", err)
	}
	_, err = archive.Find(archive.FindOptions{Archive: a, Host: miss, IgnoreKernel: true})
	var no *archive.NoMatchError
	if !errors.As(err, &no) || !errors.Is(err, archive.ErrNoKernel) || no.Match.Below.Release != "6.1.0-10-amd64" {
		t.Errorf("miss: %v", err)
	}
	if _, err = archive.Find(archive.FindOptions{Host: hit, IgnoreKernel: true}); !errors.Is(err, archive.ErrNoArchive) {
		t.Errorf("no archive: error %v", err)
	}
	if _, err = archive.Find(archive.FindOptions{Archive: a, Host: kernel.HostOptions{OSRelease: none}, IgnoreKernel: true}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(kernel.HostBTF); err != nil {
		t.Skip("needs a running kernel with BTF")
	}
	got, err = archive.Find(archive.FindOptions{Archive: a, Host: hit})
	if err != nil || got.Source != archive.FromKernel || got.Path != kernel.HostBTF || got.BTF != nil {
		t.Errorf("kernel: %+v, %v", got, err)
	}
}

func TestNamesOfValues(t *testing.T) {
	for got, want := range map[string]string{
		archive.Source(0).String(): "none", archive.FromArchive.String(): "archive", archive.Source(9).String(): "source 9", archive.Source(-1).String(): "source -1",
		archive.ExactMatch.String(): "exact", archive.NeighbourMatch.String(): "neighbour", archive.Rule(9).String(): "rule 9", archive.Rule(-1).String(): "rule -1",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
