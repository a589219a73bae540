// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
)

// TestSharedDamage changes a byte of a kernel against which three others are encoded. A fifth kernel is in a file of its own. Each command prints one line, which names that
// kernel and counts all four. With --verbose or --json, each kernel has its finding.
func TestSharedDamage(t *testing.T) {
	root := t.TempDir()
	for i := range 5 {
		types := fmt.Sprintf("struct task_struct 16: pid int 0, tgid int %d", 4+4*(i&1))
		key := fmt.Sprintf("debian/12/x86_64/6.1.0-%d-amd64.btf", i)
		if i == 4 {
			types, key = "struct other 4: unlike int 0", "arch/rolling/arm64/7.0.btf"
		}
		write(t, filepath.Join(root, key), string(testbtf.Types(t, binary.LittleEndian, types)))
	}
	object := objectFile(t, "struct task_struct 4: pid int 0", "program f\nbyte_off struct task_struct.pid")
	t.Chdir(t.TempDir())
	if status, text := runAll("corpus", "import", filepath.Join(root, "debian"), "-o", "k.btfc"); status != statusOK {
		t.Fatal(text)
	}
	other := filepath.Join(root, "arch")
	if status, text := runAll("generate", "--btf", "k.btfc", "--btf", other, "-o", "all.btfa", object); status != statusOK {
		t.Fatal(text)
	}
	data, err := os.ReadFile("k.btfc")
	if err != nil {
		t.Fatal(err)
	}
	data[len(btfc.Magic)+8] ^= 1 // the first frame follows the magic number and the version
	write(t, "k.btfc", string(data))
	const base = "debian/12/x86_64/6.1.0-0-amd64"
	for _, args := range []string{"corpus lint k.btfc ", "corpus extract -o out k.btfc ", "corpus import -o out.btfc k.btfc ",
		"check --btf k.btfc " + object + " --btf ", "generate --btf k.btfc -o out.btfa " + object + " --btf ", "relolog --btf k.btfc " + object + " --btf ",
		"verify all.btfa --btf k.btfc " + object + " --btf "} {
		args += other
		status, text := runAll(strings.Fields(args)...)
		if status != statusFindings || strings.Count(text, "SHA-256") != 1 || !strings.Contains(text, ": kernel "+base+", at byte ") || !strings.Contains(text, "; affects 4 kernels (") {
			t.Errorf("%s: exit status %d: %s", args, status, text)
		}
		if strings.Contains(text, "not among the kernels") {
			t.Errorf("%s: %s", args, text) // damaged kernels are among them
		}
		if strings.Contains(text, "(-v lists them)") {
			if _, text := runAll(strings.Fields(args + " -v")...); strings.Count(text, ": kernel "+base+", at byte ") != 4 {
				t.Errorf("%s -v: %s", args, text)
			}
		} else if !strings.Contains(text, "(--json lists them)") {
			t.Errorf("%s: %s", args, text)
		}
		if strings.HasPrefix(args, "relolog") || strings.HasPrefix(args, "verify") {
			continue // relolog and verify print lines, no document
		}
		os.RemoveAll("out")
		os.Remove("out.btfc")
		var out, msgs bytes.Buffer
		again := run(t.Context(), append(strings.Fields(args), "--json"), &out, &msgs)
		var found struct{ Findings []finding }
		if err := json.Unmarshal(out.Bytes(), &found); err != nil {
			t.Fatalf("%s: %v: %s", args, err, &out)
		}
		n := 0
		for _, f := range found.Findings {
			if strings.HasPrefix(f.File, "k.btfc!debian/12/x86_64/6.1.0-") && strings.Contains(f.Message, ": kernel "+base+", at byte ") {
				n++
			}
		}
		if again != status || n != 4 {
			t.Errorf("%s --json: exit status %d, %d findings: %s%s", args, again, n, &out, &msgs)
		}
	}
}
