// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/btfgen/btfgen/internal/limits"
)

// allocated returns the bytes that do allocates in all.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// hugeDictionary makes a small .xz say that it needs a dictionary of 1 GiB.
func hugeDictionary(t *testing.T, data []byte) []byte {
	t.Helper()
	const block = 12 // follows the stream's header
	size := 4 * (int(data[block]) + 1)
	h := data[block : block+size]
	at := bytes.Index(h, []byte{0x21, 1}) // LZMA2 and the size of its properties
	if at < 0 {
		t.Fatalf("no filter in %x", h)
	}
	h[at+2] = 36 // 2 << (36/2 + 11)
	binary.LittleEndian.PutUint32(h[size-4:], crc32.ChecksumIEEE(h[:size-4]))
	return data
}

func TestHugeDictionary(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.tar.xz")
	if _, err := (&Output{Path: path, Format: TarXz}).write(context.Background(), files(), nil); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, hugeDictionary(t, data), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	n := allocated(func() { _, err = read(path) })
	if err == nil {
		t.Error("read what needs 1 GiB")
	}
	if n > 64<<20 {
		t.Errorf("%d bytes allocated for a file of %d", n, len(data))
	}
}

// TestHugeMember holds that what is passed over in a tar counts, too.
func TestHugeMember(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.tar.zst")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewWriter(f, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	tw := tar.NewWriter(z)
	const size = limits.BundleBytes + 1<<20
	err = tw.WriteHeader(&tar.Header{Typeflag: tar.TypeCont, Name: "contiguous", Size: size})
	zeros := make([]byte, 1<<20)
	for n := 0; n < size && err == nil; n += len(zeros) {
		_, err = tw.Write(zeros)
	}
	err = errors.Join(err, tw.WriteHeader(&tar.Header{Name: "a.btf"}), tw.Close(), z.Close())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := read(path); err == nil {
		t.Errorf("read %d files behind a member of %d bytes", len(got), size)
	}
}

// TestHugeFile holds that a file of a directory is not read to find out that it is too large.
func TestHugeFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.btf")
	if err := errors.Join(os.WriteFile(path, nil, 0o666), os.Truncate(path, limits.BundleBytes+1)); err != nil {
		t.Fatal(err)
	}
	var err error
	if n := allocated(func() { _, err = read(dir) }); err == nil || n > 1<<20 {
		t.Errorf("%d bytes allocated, error %v", n, err)
	}
}
