// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestELFNames has kernels whose sections all have the same long name, or many sections.
func TestELFNames(t *testing.T) {
	le := binary.LittleEndian
	kernel := func(sections int) []byte {
		list := make([]section, sections)
		for i := range list {
			list[i].name = "x"
		}
		return elfFile(le, elf.ET_EXEC, elf.EM_X86_64, append(list, section{".BTF", 0, blobLE})...)
	}
	renamed := func(flags elf.SectionFlag, names []byte) []byte {
		data := kernel(50)
		headers := data[le.Uint64(data[40:]):]
		h := headers[64*int(le.Uint16(data[62:])):]
		for i := range le.Uint16(data[60:]) {
			le.PutUint32(headers[64*int(i):], 0)
		}
		le.PutUint64(h[8:], uint64(flags))
		le.PutUint64(h[24:], uint64(len(data)))
		le.PutUint64(h[32:], uint64(len(names)))
		return append(data, names...)
	}
	long := append(bytes.Repeat([]byte("x"), 8<<20), 0)
	many := kernel(10)
	le.PutUint16(many[60:], 0) // the number is in the first header
	le.PutUint64(many[le.Uint64(many[40:])+32:], 1<<17)
	many = append(many, make([]byte, 64<<17)...)
	for name, tt := range map[string]struct {
		data []byte
		want string
	}{
		"long":       {renamed(0, long), "elf: too large: more than 67108864 bytes of names of sections"},
		"compressed": {renamed(elf.SHF_COMPRESSED, compressedSection("", long).data), "elf: compressed names of sections"},
		"many":       {many, "elf: sections: too large: more than 65536 sections"},
	} {
		path := filepath.Join(tree(t, map[string]string{"vmlinux": string(tt.data)}), "vmlinux")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, got, errs := readAll(t, Options{}, path)
		runtime.ReadMemStats(&after)
		if len(got) > 0 || len(errs) != 1 || !strings.HasSuffix(errs[0].Error(), tt.want) {
			t.Errorf("%s: %d kernels, errors %v, want %s", name, len(got), errs, tt.want)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
			t.Errorf("%s: %d bytes allocated for %d", name, n, len(tt.data))
		}
	}
}
