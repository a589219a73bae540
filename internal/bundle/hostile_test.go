package bundle

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime"
	"testing"
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
	if err := Write(path, TarXz, files()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, hugeDictionary(t, data), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	n := allocated(func() { _, err = Read(path) })
	if err == nil {
		t.Error("read what needs 1 GiB")
	}
	if n > 64<<20 {
		t.Errorf("%d bytes allocated for a file of %d", n, len(data))
	}
}
