// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testminimized"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// TestPython reads real kernels, and types that no kernel has, with the reader in Python, which was written from
// docs/archive-format.md.
func TestPython(t *testing.T) {
	slow.Skip(t)
	needPython(t)
	var odd []archive.Kernel
	for i := range 60 {
		r := rand.New(rand.NewPCG(uint64(i), 0))
		data := make([]byte, 400)
		for j := range data {
			data[j] = byte(r.Uint32())
		}
		types, _ := randomTypes(data)
		order := [...]binary.ByteOrder{binary.LittleEndian, binary.BigEndian}[i%2]
		odd = append(odd, archive.Kernel{Key: kernel.Key{ID: "odd", Arch: "x86_64", Release: fmt.Sprint(i)}, BTF: encoded(t, types, order)})
	}
	for name, kernels := range map[string][]archive.Kernel{"real": testminimized.Kernels(t), "odd": odd} {
		dir := t.TempDir()
		path := filepath.Join(dir, "x.btfa")
		if err := os.WriteFile(path, mustWrite(t, kernels), 0o666); err != nil {
			t.Fatal(err)
		}
		out := pythonReader(t, path, dir)
		if got, want := strings.TrimSpace(string(out)), infoText(mustOpen(t, mustWrite(t, kernels)).Info()); got != want {
			t.Errorf("%s: the reader in Python says\n%s\nwant\n%s", name, got, want)
		}
		for _, k := range kernels {
			got, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(k.Key.FileName())))
			if err != nil || !bytes.Equal(got, k.BTF) {
				t.Errorf("%s: differs (%v)", k.Key, err)
			}
		}
	}
}

func needPython(t *testing.T) {
	t.Helper()
	for _, tool := range []string{"python3", "zstd"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("needs " + tool)
		}
	}
}

// pythonReader writes the kernels of an archive to dir, and returns what the reader prints about
// how it was made.
func pythonReader(t *testing.T, path, dir string) []byte {
	t.Helper()
	cmd := exec.Command("python3", "-B", "-m", "btfa", path, dir)
	cmd.Env = append(os.Environ(), "PYTHONPATH=../../lib/python")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", path, err, out)
	}
	return regexp.MustCompile(`(?m)^kernel .*\n`).ReplaceAll(out, nil)
}

// infoText returns the output of the reader in Python.
func infoText(info archive.Info) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nshard %s\n", info.Tool, info.Shard)
	for _, r := range info.Relocations {
		fmt.Fprintf(&b, "relocations %q %x\n", r.Arch, r.Sum)
	}
	for _, o := range info.Objects {
		fmt.Fprintf(&b, "object %q %x %q %x\n", o.Name, o.Sum, strings.Join(o.Arches, " "), o.Fingerprint)
	}
	return strings.TrimSpace(b.String())
}
