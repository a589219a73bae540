// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/testbtf"
)

// TestLongName checks that an object whose programs cannot be analysed, because a function has too long a name, does not
// affect other objects.
func TestLongName(t *testing.T) {
	dir := t.TempDir()
	put := func(name string, data []byte) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, data, 0o666); err != nil {
			t.Fatal(err)
		}
		return name
	}
	kernel := put("vmlinux.btf", testbtf.Types(t, binary.LittleEndian, "struct s 8: b u32 0\n"))
	object := func(name, program, asks string, offsets ...uint64) string {
		return put(name, testbtf.Object(t, binary.LittleEndian, "struct s 8: a u32 0, b u32 4\n", "program "+program+"\n"+asks, offsets...))
	}
	good := object("good.o", "p", "byte_off struct s.a\nbyte_off struct s.b", 0, 4)
	long := object("long.o", strings.Repeat("n", 5000), "byte_off struct s.a")
	harmless := object("harmless.o", strings.Repeat("n", 5000), "byte_off struct s.b", 4)
	for _, tc := range []struct {
		args     []string
		status   int
		reported bool
	}{
		{nil, statusOK, false},
		{[]string{"-v"}, statusOK, true},
		{[]string{"--fail-on", "reached"}, statusFindings, true},
	} {
		var stdout, stderr bytes.Buffer
		out := filepath.Join(dir, "out"+strings.Join(tc.args, ""))
		args := append([]string{"generate", "--btf", kernel, "-o", out, good, long, harmless}, tc.args...)
		if s := run(t.Context(), args, &stdout, &stderr); s != tc.status {
			t.Errorf("%q: exit status %d, want %d: %s", tc.args, s, tc.status, &stderr)
		}
		if !strings.Contains(stderr.String(), "1 kernel") {
			t.Errorf("%q: no summary: %s", tc.args, &stderr)
		}
		said := stdout.String() + stderr.String()
		if reported := strings.Contains(said, "long.o: cannot determine whether the verifier reaches poisoned relocations: "); reported != tc.reported {
			t.Errorf("%q: reported: %t, want %t: %s", tc.args, reported, tc.reported, said)
		}
		if strings.Contains(said, "harmless.o: cannot determine") {
			t.Errorf("%q: reports an object without poisoned relocations: %s", tc.args, said)
		}
	}
}
