// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/bpfobj/embedded"
	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testelf"
)

// TestCheckRealObjects wants check to end without a defect for objects of real tools on the oldest and the newest kernel, and to judge
// every program.
func TestCheckRealObjects(t *testing.T) {
	slow.Skip(t)
	var paths []string
	objects := 0 // objects in these files
	for _, name := range []string{"BTFGEN_DEBIAN", "BTFGEN_OBJECTS"} {
		if os.Getenv(name) == "" {
			continue
		}
		if err := filepath.WalkDir(os.Getenv(name), func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			found, err := embedded.ReadFile(path)
			if errors.Is(err, embedded.ErrNone) {
				return nil
			}
			paths, objects = append(paths, path), objects+len(found)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if len(paths) == 0 {
		t.Skip("needs BTFGEN_DEBIAN or BTFGEN_OBJECTS to name a directory with BPF objects")
	}
	const kernels = "../../testdata/vmlinux/debian/"
	var stdout, stderr bytes.Buffer
	status := run(t.Context(), append([]string{"check", "--json", "--btf", kernels + "11/x86_64", "--btf", kernels + "experimental/x86_64"}, paths...), &stdout, &stderr)
	if status != statusOK && status != statusFindings {
		t.Fatalf("status %d: %s", status, &stderr)
	}
	var rep struct {
		Kernels, Objects []any
		Programs         []struct {
			Object, Program string
			Status          []rule.Status
		}
		Findings []finding
	}
	if err := json.Unmarshal(stdout.Bytes(), &rep); err != nil {
		t.Fatal(err)
	}
	if len(rep.Kernels) != 2 || len(rep.Objects) != objects {
		t.Errorf("%d objects on %d kernels, want %d on 2", len(rep.Objects), len(rep.Kernels), objects)
	}
	for _, p := range rep.Programs {
		if len(p.Status) != len(rep.Kernels) {
			t.Errorf("%s: %s: verdicts on %d kernels", p.Object, p.Program, len(p.Status))
		}
	}
	for _, f := range rep.Findings {
		if f.Class == defective || f.Class == damaged {
			t.Errorf("%+v", f)
		}
	}
	t.Logf("%d programs of %d objects", len(rep.Programs), len(rep.Objects))
}

// TestNoProgram checks valid objects without programs beside one with: they are skipped by every command, which is no failure.
func TestNoProgram(t *testing.T) {
	code := []byte{0xb7, 0, 0, 0, 0, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0} // return 0
	dir := t.TempDir()
	for name, tt := range map[string]struct {
		section testelf.Section
		symbol  testelf.Symbol
		want    string
	}{
		"maps":  {testelf.Section{Name: ".maps", Flags: elf.SHF_ALLOC | elf.SHF_WRITE, Data: make([]byte, 8)}, testelf.Symbol{}, "no program in it"},
		"funcs": {testelf.Section{Name: ".text", Flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, Data: code}, testelf.Symbol{Name: "f", Size: 16, Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC)}, "no program in it, only functions to link statically"},
	} {
		f := testelf.File{Order: binary.LittleEndian, Type: elf.ET_REL, Machine: elf.EM_BPF, Sections: []testelf.Section{tt.section}}
		if tt.symbol.Name != "" {
			f.Symbols = []testelf.Symbol{tt.symbol}
		}
		data, _ := f.Build()
		path := filepath.Join(dir, name+".bpf.o")
		write(t, path, string(data))
		var stdout, stderr bytes.Buffer
		status := run(t.Context(), []string{"check", "-v", "--btf", "../../testdata/vmlinux/debian/12/x86_64", "../../testdata/bpf/tcplife.bpfel.o", path}, &stdout, &stderr)
		if status != statusOK || !strings.Contains(stderr.String(), "skipped: ") || !strings.Contains(stderr.String(), ": "+tt.want+"\n") {
			t.Errorf("%s: status %d: %s", name, status, &stderr)
		}
	}
}
