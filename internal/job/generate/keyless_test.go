// SPDX-License-Identifier: Apache-2.0

package generate_test

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/naming"
	"github.com/btfgen/btfgen/internal/job/generate"
	"github.com/btfgen/btfgen/internal/testing/testelf"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// TestKeyless generates from a kernel with a known machine and release, and one without any key. An archive has only the
// first, and a later run finds it by the name of its file.
func TestKeyless(t *testing.T) {
	ctx := context.Background()
	dir, out := t.TempDir(), t.TempDir()
	btf := btf.NewBuilder(binary.LittleEndian).Bytes()
	vmlinux, _ := (&testelf.File{Order: binary.LittleEndian, Type: elf.ET_EXEC, Machine: elf.EM_AARCH64, Sections: []testelf.Section{{Name: ".BTF", Data: btf}}}).Build()
	put := func(dir, name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	put(dir, "vmlinux-6.1.0", vmlinux)
	keyless := put(dir, "6.2.0.btf", btf)
	run := func(old generate.Old) (*generate.Report, *generate.Config) {
		cfg := config(t, dir)
		cfg.Keyed, cfg.Hash, cfg.Old = true, true, old
		rep, err := generate.Run(ctx, cfg)
		if err != nil {
			t.Fatal(err)
		}
		rep.Skipped = slices.DeleteFunc(rep.Skipped, func(e *corpus.Error) bool { return errors.Is(e, corpus.ErrUnmet) }) // objects for x86_64
		if len(rep.Skipped) != 1 || rep.Skipped[0].Path != keyless || !errors.Is(rep.Skipped[0], naming.ErrNoKey) {
			t.Errorf("skipped %v", rep.Skipped)
		}
		if k := rep.Archive(); len(k) != 1 || k[0].Key != (kernel.Key{Arch: "arm64", Release: "6.1.0"}) {
			t.Fatalf("kernels %v", k)
		}
		return rep, &cfg
	}
	rep, cfg := run(nil)
	var a bytes.Buffer
	if err := archive.Write(t.Context(), &a, archive.Info{}, rep.Archive()); err != nil {
		t.Fatal(err)
	}
	m, err := generate.NewManifest("test", cfg, rep).Encode()
	if err != nil {
		t.Fatal(err)
	}
	old, why, err := generate.ReadOld(ctx, put(out, "a.btfa", a.Bytes()), put(out, "a.json", m), "test", cfg)
	if err != nil || why != "" {
		t.Fatal(why, err)
	}
	if rep, _ = run(old); !rep.Kernels[0].Reused {
		t.Error("the kernel was not reused")
	}
}
