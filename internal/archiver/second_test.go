package archiver

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/btfgen/btfgen/internal/testminimized"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// TestSecondReader has a reader that was written from docs/archive-format.md
// read real kernels, and types that no kernel has.
func TestSecondReader(t *testing.T) {
	for _, tool := range []string{"python3", "zstd"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("needs " + tool)
		}
	}
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
		if out, err := exec.Command("python3", "testdata/second_reader.py", path, dir).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
			continue
		}
		for _, k := range kernels {
			got, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(k.Key.FileName())))
			if err != nil || !bytes.Equal(got, k.BTF) {
				t.Errorf("%s: differs (%v)", k.Key, err)
			}
		}
	}
}
