// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"debug/elf"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/testelf"
)

// TestOther checks what is said about files that are no object, and which of them are kernels.
func TestOther(t *testing.T) {
	host := func(kind elf.Type, sections ...testelf.Section) string {
		d, _ := (&testelf.File{Order: le, Machine: elf.EM_X86_64, Type: kind, Sections: sections}).Build()
		return string(d)
	}
	real := func(name string) string {
		data, err := os.ReadFile("../../../testdata/vmlinux/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	pad := func(at int, text string) string { return strings.Repeat("\x01", at) + text }
	for _, tt := range []struct {
		name, data, want string
		kernel           bool
	}{
		{"empty", "", "empty; build it again", false},
		{"LFS", "version https://git-lfs.github.com/spec/v1\noid sha256:4d\n", "a Git LFS pointer; fetch its content, with git lfs pull", false},
		{"page", "<!DOCTYPE html><title>404</title>", "an HTML page; download the file itself", false},
		{"bitcode", "BC\xc0\xde5\x14\x00\x00", "LLVM bitcode; compile without -flto", false},
		{"gzip", "\x1f\x8b\x08\x08", "compressed with gzip; decompress it first if it is an object", false},
		{"zstd", real("debian/12/x86_64/6.1.0-47-amd64.btf.zst"), "compressed with zstd; decompress it first if it is an object", false},
		{"tar", pad(257, "ustar\x00"), "a tar file; unpack it first", false},
		{"library", "!<arch>\nx.o/", "a library of objects; unpack it first, with ar x", false},
		{"package", "!<arch>\ndebian-binary   ", "a package", true},
		{"BTF", "\x9f\xeb\x01\x00\x18", "a kernel's BTF", true},
		{"BTF of another order", "\xeb\x9f\x01\x00\x00", "a kernel's BTF", true},
		{"image", pad(0x202, "HdrS"), "a kernel image", true},
		{"vmlinux", host(elf.ET_EXEC, testelf.Section{Name: ".rodata", Data: []byte("Linux version 6.1.0 (x)")}, testelf.Section{Name: ".BTF", Data: []byte("x")}), "a kernel", true},
		{"module", host(elf.ET_REL, testelf.Section{Name: ".modinfo", Data: []byte("license=GPL\x00vermagic=6.1.0 SMP")}), "a kernel module", true},
		{"object for the host", host(elf.ET_REL), "an object for x86_64; compile it for BPF, with clang --target=bpf -g -O2 -c", false},
		{"program", host(elf.ET_EXEC), "a program for x86_64 that embeds no ELF file for BPF, as with a light skeleton; name the object that it was built with", false},
		{"source", "// x\n#include <linux/bpf.h>\n", "C source; compile it, with clang --target=bpf -g -O2 -c", false},
		{"text", `{"name": "x"}`, "text; name the compiled object", false},
		{"text that is long", strings.Repeat("ä", 300), "text; name the compiled object", false},
		{"text that is long and odd", "x" + strings.Repeat("ä", 300), "text; name the compiled object", false},
	} {
		_, err := Find([]byte(tt.data))
		if !errors.Is(err, ErrNone) || !strings.HasPrefix(err.Error(), "no BPF object inside: it is "+tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
		if IsKernel(err) != tt.kernel {
			t.Errorf("%s: a kernel: %t", tt.name, !tt.kernel)
		}
	}
	if _, err := Find([]byte("\x00\x01\x02")); err != ErrNone {
		t.Errorf("of no known kind: %v", err)
	}
}
