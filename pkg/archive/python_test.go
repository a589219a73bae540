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
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testminimized"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// TestSecondReader reads real kernels, and types that no kernel has, with a reader that
// was written from docs/archive-format.md.
func TestSecondReader(t *testing.T) {
	slow.Skip(t)
	needSecondReader(t)
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
		out := secondReader(t, path, dir)
		if got, want := strings.TrimSpace(string(out)), infoText(mustOpen(t, mustWrite(t, kernels)).Info()); got != want {
			t.Errorf("%s: the second reader says\n%s\nwant\n%s", name, got, want)
		}
		for _, k := range kernels {
			got, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(k.Key.FileName())))
			if err != nil || !bytes.Equal(got, k.BTF) {
				t.Errorf("%s: differs (%v)", k.Key, err)
			}
		}
	}
}

func needSecondReader(t *testing.T) {
	t.Helper()
	for _, tool := range []string{"python3", "zstd"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("needs " + tool)
		}
	}
}

// secondReader writes the kernels of an archive to dir, and returns what the reader prints.
func secondReader(t *testing.T, path, dir string) []byte {
	t.Helper()
	out, err := exec.Command("python3", "testdata/second_reader.py", path, dir, "../../internal/btfa/dictionary").CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", path, err, out)
	}
	return out
}

// infoText returns the output of the second reader.
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
