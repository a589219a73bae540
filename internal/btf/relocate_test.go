// SPDX-License-Identifier: Apache-2.0

package btf_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	cbtf "github.com/cilium/ebpf/btf"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
)

const kernelTypes = "struct other 4: a int 0\nstruct list 16: next u64 0, prev u64 8\nstruct big 8: a int 0\nstruct big#2 4: a int 0\nenum mode 4: ON 1\n" +
	"enum64 wide 8: ON 1\nfwd hidden struct\nfwd secret union\nunion both 8: a u64 0\nstruct both#2 4: a int 0\nunion bits 4: a u32 @0:3\nstruct flags 4: a u32 @0:3\n" +
	"struct twice 8: a u64 0\nstruct twice#2 8: b u64 0\n"

// TestRelocate relocates modules whose base has other IDs and names than the kernel. Each line is a rule of libbpf's btf_relocate.c.
func TestRelocate(t *testing.T) {
	kernel := testbtf.Types(t, binary.LittleEndian, kernelTypes)
	for _, tt := range []struct{ name, base, module, want, err string }{
		{"by value", "struct list 16:", "struct mine 24: at list 0, n int 16", "struct mine 24: at list 0, n int 16", ""},
		{"forward", "fwd list struct", "typedef alias list", "typedef alias list", ""},
		{"enum", "enum mode 4:", "struct mine 4: m mode 0", "struct mine 4: m mode 0", ""},
		{"enum64", "enum wide 8:", "struct mine 8: m wide 0", "struct mine 8: m wide 0", ""},
		{"one of two, by size", "struct big 4:", "struct mine 4: m big 0", "struct mine 4: m big#2 0", ""},
		{"one of two, by size, behind a pointer", "struct big 4:", "typedef alias big", "typedef alias big#2", ""},
		{"struct or union, by size", "union both 4:", "typedef alias both", "typedef alias both#2", ""},
		{"another size behind a pointer", "struct list 8:", "struct mine 8: at *list 0", "struct mine 8: at *list 0", ""},
		{"only declared", "struct hidden 8:", "struct mine 8: at *hidden 0", "struct mine 8: at *hidden 0", ""},
		{"declaration of a union", "fwd secret union", "typedef alias secret", "typedef alias secret", ""},
		{"forward to a union with bit fields", "fwd bits union", "typedef alias bits", "typedef alias bits", ""},
		{"another encoding", "int list 16 signed", "typedef alias list", "", "the kernel has no int list of 16 bytes"},
		{"another size", "struct list 8:", "struct mine 8: at list 0", "", "the kernel has no struct list of 8 bytes"},
		{"another size in an array", "struct list 8:", "const c list\nstruct mine 16: at c[2] 0", "", "the kernel has no struct list of 8 bytes"},
		{"another size of an enum", "enum mode 8:", "typedef alias mode", "", "the kernel has no enum mode of 8 bytes"},
		{"declaration of the other kind", "fwd hidden union", "typedef alias hidden", "", "the kernel has no fwd hidden"},
		{"forward to a union without bit fields", "fwd both union", "typedef alias both", "", "the kernel has no fwd both"},
		{"forward to a struct with bit fields", "fwd flags struct", "typedef alias flags", "", "the kernel has no fwd flags"},
		{"forward to one of two", "fwd big struct", "typedef alias big", "", "the kernel has no fwd big"},
		{"missing", "struct gone 8:", "struct mine 8: at gone 0", "", "the kernel has no struct gone of 8 bytes"},
		{"only declared, by value", "struct hidden 8:", "struct mine 8: at hidden 0", "", "the kernel has no struct hidden of 8 bytes"},
		{"several", "struct twice 8:", "typedef alias twice", "", "the kernel has several types for struct twice: "},
		{"unexpected kind", "typedef list u64", "typedef alias list", "", "distilled base: type 5 is typedef list, want "},
		{"enum64 in the base", "enum64 wide 8:", "typedef alias wide", "", "distilled base: type 5 is enum64 wide, want "},
		{"no name", "struct #1 8:", "typedef alias #1", "", "distilled base: type 5 (struct) has no name"},
		{"circle", "struct list 16:", "typedef a b\ntypedef b a\nstruct mine 4: at a 0", "", "types: type 8 (struct mine): types refer to each other without end"},
		{"a string of no type", "struct list 16: other u64 0", "struct other 8: a u64 0", "", "the string \"other\" is no type's name"},
	} {
		base := testbtf.Types(t, binary.LittleEndian, tt.base)
		b, err := btf.New(kernel, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := btf.Relocate(t.Context(), testbtf.Module(t, binary.LittleEndian, tt.base, tt.module), base, b)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %v, want %s", tt.name, err, tt.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if want := testbtf.Module(t, binary.LittleEndian, kernelTypes, tt.want); !bytes.Equal(got, want) {
			t.Errorf("%s:\n%x, want\n%x", tt.name, got, want)
		}
	}
}

// TestRelocateTestmod relocates the module of the kernel's own tests, whose distilled base pahole has made. The kernel and the module are
// test data of cilium/ebpf, which must be able to read the result. It must have the types and strings that btf__relocate of libbpf 1.8 makes.
func TestRelocateTestmod(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/cilium/ebpf").Output()
	if err != nil || len(bytes.TrimSpace(out)) == 0 {
		t.Skip("needs the source of cilium/ebpf in the module cache")
	}
	file := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(string(bytes.TrimSpace(out)), "btf", "testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	z, err := gzip.NewReader(bytes.NewReader(file("vmlinux.btf.gz")))
	if err != nil {
		t.Fatal(err)
	}
	vmlinux, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	kernel, err := btf.New(vmlinux, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := btf.Relocate(t.Context(), file("btf_testmod.btf"), file("btf_testmod.btf.base"), kernel)
	if err != nil {
		t.Fatal(err)
	}
	h, err := btf.ReadHeader(got, int64(len(got)))
	if err != nil {
		t.Fatal(err)
	}
	const libbpf = "715054e31f27308174161fed31681ba63201d2c88c476febcd65dac1153c4e84"
	content := got[h.Len:]
	if sum := fmt.Sprintf("%x", sha256.Sum256(content)); sum != libbpf {
		t.Errorf("types and strings %s, libbpf makes %s", sum, libbpf)
	}
	base, err := cbtf.LoadSpecFromReader(bytes.NewReader(vmlinux))
	if err != nil {
		t.Fatal(err)
	}
	module, err := cbtf.LoadSplitSpecFromReader(bytes.NewReader(got), base)
	if err != nil {
		t.Fatal(err)
	}
	var s *cbtf.Struct
	if err := module.TypeByName("bpf_testmod_test_write_ctx", &s); err != nil {
		t.Fatal(err)
	}
}

// FuzzRelocate relocates any module on any base: the result can be read on top of the kernel.
func FuzzRelocate(f *testing.F) {
	kernel := testbtf.Types(f, binary.LittleEndian, kernelTypes)
	b, err := btf.New(kernel, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(testbtf.Module(f, binary.LittleEndian, "struct list 16:", "struct mine 24: at list 0, n int 16"), testbtf.Types(f, binary.LittleEndian, "struct list 16:"))
	f.Fuzz(func(t *testing.T, split, base []byte) {
		if out, err := btf.Relocate(t.Context(), split, base, b); err == nil {
			if _, err := btf.New(out, b); err != nil {
				t.Error(err)
			}
		}
	})
}
