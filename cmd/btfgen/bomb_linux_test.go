// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/btfgen/btfgen/internal/testing/slow"
)

// hollowBTF returns BTF of n bytes: noise and zeros.
func hollowBTF(n, noise int) []byte {
	b := make([]byte, n)
	copy(b, "\x9f\xeb\x01\x00")
	binary.LittleEndian.PutUint32(b[4:], 24)
	binary.LittleEndian.PutUint32(b[12:], uint32(n-24-8)) // size of types
	binary.LittleEndian.PutUint32(b[16:], uint32(n-24-8))
	binary.LittleEndian.PutUint32(b[20:], 8) // size of strings
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b[24:][:noise])
	return b
}

// squeeze compresses data.
func squeeze(t *testing.T, format string, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	var err error
	switch format {
	case "gz":
		w, err = gzip.NewWriterLevel(&b, gzip.BestSpeed)
	case "zst":
		w, err = zstd.NewWriter(&b, zstd.WithEncoderLevel(zstd.SpeedFastest))
	}
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestBombs reads small files with large contents. Some do not fit in memory together. Eight workers stay within the limit for the
// process.
func TestBombs(t *testing.T) {
	slow.Skip(t)
	object, err := filepath.Abs("../../testdata/bpf/tcplife.bpfel.o")
	if err != nil {
		t.Fatal(err)
	}
	large := hollowBTF(150<<20, 0)
	var tarred bytes.Buffer
	w := tar.NewWriter(&tarred)
	if err := w.WriteHeader(&tar.Header{Name: "x.btf", Mode: 0o644, Size: int64(len(large))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(large); err != nil {
		t.Fatal(err)
	}
	// Bytes of memory, where they are not 1 GiB: the heap grows to twice what kernels may hold together, and a zstd frame without a size
	// is decoded into memory that grows.
	most := map[string]int64{"real.zst": 2 << 30, "btf.zst": 1280 << 20}
	for name, pack := range map[string]func() []byte{
		"btf.gz":     func() []byte { return squeeze(t, "gz", squeeze(t, "gz", large)) },
		"btf.zst":    func() []byte { return squeeze(t, "zst", large) },
		"btf.tar.gz": func() []byte { return squeeze(t, "gz", squeeze(t, "zst", tarred.Bytes())) },
		"real.zst":   func() []byte { return squeeze(t, "zst", hollowBTF(150<<20, 2<<20)) }, // the highest ratio of unpacked to packed that limits allow
	} {
		t.Run(name, func(t *testing.T) {
			data := pack()
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "k"), 0o777); err != nil {
				t.Fatal(err)
			}
			for i := range 8 {
				if err := os.WriteFile(filepath.Join(dir, "k", fmt.Sprintf("6.%d.%s", i, name)), data, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			for _, args := range [][]string{
				{"generate", "-j", "8", "--btf", "k", "-o", "o.btfa", object},
				{"corpus", "import", "-j", "8", "--as", "debian/12/x86_64/{release}", "-o", "o.btfc", "k"},
			} {
				cmd := exec.Command(program(t), args...)
				cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOMAXPROCS=2")
				out, err := cmd.CombinedOutput()
				used := memoryOf(cmd.ProcessState)
				t.Logf("%s: %d MiB", args[:2], used>>20)
				if err == nil || bytes.Count(out, []byte(": k/6.")) != 8 {
					t.Errorf("%q: %v, want an error for each of 8 files\n%s", args, err, out)
				}
				if most := cmp.Or(most[name], 1<<30); used > most { // 3 GB without a limit
					t.Errorf("%q: %d MiB of memory, want at most %d", args, used>>20, most>>20)
				}
			}
		})
	}
}
