// SPDX-License-Identifier: Apache-2.0

package btfspec_test

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"

	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/internal/testing/testelf"
	"github.com/btfgen/btfgen/internal/testing/testminimized"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/archive/btfspec"
	"github.com/btfgen/btfgen/pkg/kernel"
)

func TestLoad(t *testing.T) {
	check := func(types *archive.Types) {
		t.Helper()
		spec, err := btfspec.Load(types)
		if err != nil {
			t.Fatalf("%s: %v", types.Match.Key, err)
		}
		var task *btf.Struct
		if err := spec.TypeByName("task_struct", &task); err != nil {
			t.Errorf("%s: %v", types.Match.Key, err)
		}
	}
	for _, k := range testminimized.Kernels(t) {
		check(&archive.Types{Source: archive.FromArchive, Match: archive.Match{Key: k.Key}, BTF: k.BTF})
	}
	dir := t.TempDir()
	named, empty := filepath.Join(dir, "named.btf"), filepath.Join(dir, "empty.btf")
	for name, data := range map[string][]byte{named: testminimized.Kernels(t)[0].BTF, empty: nil} {
		if err := os.WriteFile(name, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	check(&archive.Types{Source: archive.FromFile, Path: named})
	if _, err := btfspec.Load(&archive.Types{Source: archive.FromFile, Path: empty}); err == nil || !strings.HasPrefix(err.Error(), empty+": ") {
		t.Errorf("error %v", err)
	}
	bad := &archive.Types{Source: archive.FromArchive, Match: archive.Match{Key: kernel.Key{Release: "6.1"}}, BTF: []byte("bad")}
	if _, err := btfspec.Load(bad); err == nil || !strings.HasPrefix(err.Error(), "kernel -/-/-/6.1: ") {
		t.Errorf("error %v", err)
	}
	if spec, err := btfspec.Load(&archive.Types{Source: archive.FromKernel, Path: kernel.HostBTF}); spec != nil || err != nil {
		t.Errorf("the kernel's own: %v, %v", spec, err)
	}
}

// TestNesting checks that Load refuses types on which cilium/ebpf would overflow its stack.
func TestNesting(t *testing.T) {
	loop := testbtf.Types(t, binary.LittleEndian, "typedef loop loop[2]\nstruct s 8: b loop 0\n")
	raw, image := filepath.Join(t.TempDir(), "raw.btf"), filepath.Join(t.TempDir(), "vmlinux")
	file := testelf.File{Order: binary.LittleEndian, Type: elf.ET_EXEC, Machine: elf.EM_X86_64, Sections: []testelf.Section{{Name: ".BTF", Type: elf.SHT_PROGBITS, Data: loop}}}
	vmlinux, _ := file.Build()
	for name, data := range map[string][]byte{raw: loop, image: vmlinux} {
		if err := os.WriteFile(name, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, types := range []*archive.Types{
		{Source: archive.FromFile, Path: raw},
		{Source: archive.FromFile, Path: image},
		{Source: archive.FromArchive, Match: archive.Match{Key: kernel.Key{Release: "6.1"}}, BTF: loop},
	} {
		name := cmp.Or(types.Path, "kernel -/-/-/6.1")
		if _, err := btfspec.Load(types); err == nil || !strings.HasPrefix(err.Error(), name+": cilium/ebpf cannot follow its types: type 5 (typedef) leads back to itself") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
