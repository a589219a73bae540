// SPDX-License-Identifier: Apache-2.0

package decompress

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"runtime"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/ulikunitz/xz/lzma"

	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
)

// 64 MiB of zeros as bzip2, which no library here writes.
const bombBzip2 = "QlpoOTFBWSZTWQ4J4t8BX45AAMAAAAggADCATUZCoCWpCoCXMUFZJlNZvAS1wwCidcAAwAAACCAAIKQINjKKiE0qKiE4u5IpwoSFALuD6A=="

// bombs are 64 MiB of zeros in every format, and less where packing them takes a minute.
func bombs(t *testing.T) map[Format][]byte {
	t.Helper()
	zeros := make([]byte, 64<<20)
	if raceflag.Enabled {
		zeros = zeros[:4<<20]
	}
	with := func(w io.WriteCloser, err error, b *bytes.Buffer) []byte {
		if err == nil {
			_, err = w.Write(zeros)
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	var gz, zs, lz, lm bytes.Buffer
	zw, zerr := zstd.NewWriter(&zs)
	lw, lerr := lzma.NewWriter(&lm)
	bz, err := base64.StdEncoding.DecodeString(bombBzip2)
	if err != nil {
		t.Fatal(err)
	}
	return map[Format][]byte{
		XZ:    compressXZ(t, zeros),
		Gzip:  with(gzip.NewWriter(&gz), nil, &gz),
		Zstd:  with(zw, zerr, &zs),
		LZ4:   with(lz4.NewWriter(&lz), nil, &lz),
		LZMA:  with(lw, lerr, &lm),
		Bzip2: bz,
	}
}

// decoders returns what may read .xz: the decoder in Go and, if it is installed, the xz program.
func decoders(t *testing.T) []*XZProgram {
	if x := xzProgram(t); x.usable() {
		return []*XZProgram{nil, x}
	}
	return []*XZProgram{nil}
}

// allocated returns the bytes that fn allocates.
func allocated(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestBombs checks that no more comes out than the limit of one part, nor more
func TestBombs(t *testing.T) {
	slow.Skip(t)
	for format, data := range bombs(t) {
		if got := Sniff(data); got != format {
			t.Errorf("%s looks like %s", format, got)
		}
		for _, xz := range decoders(t) {
			for _, tt := range []struct {
				limit, budget int64
				want          string
			}{
				{1 << 20, 16 << 20, "larger than the limit of 1 MiB"},
				{1 << 30, 1 << 20, "unpacks to more than 1 MiB"},
			} {
				n := allocated(func() {
					if _, err := First(context.Background(), data, format, xz, tt.limit, newBudget(tt.budget), new(Arena)); err == nil || err.Error() != tt.want {
						t.Errorf("%s: error %v, want %s", format, err, tt.want)
					}
				})
				if n > 32<<20 {
					t.Errorf("%s, limit %d: %d bytes allocated", format, tt.limit, n)
				}
			}
			n := allocated(func() {
				r, err := Open(t.Context(), bufio.NewReader(bytes.NewReader(data)), int64(len(data)), format, xz)
				if err != nil {
					t.Fatal(format, err)
				}
				defer r.Close()
				if got, err := io.Copy(io.Discard, Metered(context.Background(), r, newBudget(1<<20))); err == nil || got > 2<<20 {
					t.Errorf("%s: %d bytes, %v", format, got, err)
				}
			})
			if n > 32<<20 {
				t.Errorf("%s, opened: %d bytes allocated", format, n)
			}
		}
	}
}

// TestStops wants decoding to end with its context.
func TestStops(t *testing.T) {
	slow.Skip(t)
	for format, data := range bombs(t) {
		for _, xz := range decoders(t) {
			ctx, cancel := context.WithCancel(context.Background())
			r, err := Open(ctx, bufio.NewReader(bytes.NewReader(data)), int64(len(data)), format, xz)
			if err != nil {
				t.Fatal(format, err)
			}
			m := Metered(ctx, r, newBudget(16<<30))
			if _, err := io.ReadFull(m, make([]byte, 100)); err != nil {
				t.Fatal(format, err)
			}
			cancel()
			if n, err := m.Read(make([]byte, 100)); n > 0 || !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %d bytes, %v", format, n, err)
			}
			r.Close()
		}
	}
}

// TestDictionaries checks that the decoder in Go and the xz program take dictionaries up to the limit.
func TestDictionaries(t *testing.T) {
	small, all := compressXZ(t, []byte("x")), decoders(t)
	for size := byte(0); size <= 40; size++ {
		data := withDictionary(t, bytes.Clone(small), size)
		for _, xz := range all {
			got, err := First(context.Background(), data, XZ, xz, 1<<20, newBudget(16<<20), new(Arena))
			if want := size <= 30; want != (err == nil) { // 2 << (30/2 + 11) is limits.Dictionary
				t.Errorf("size %d: %v", size, err)
			}
			if err == nil && string(got) != "x" {
				t.Errorf("size %d: %q", size, got)
			}
		}
	}
}

// withDictionary changes the size of the dictionary that an .xz needs.
func withDictionary(t *testing.T, data []byte, dict byte) []byte {
	t.Helper()
	const block = 12 // follows the stream's header
	size := 4 * (int(data[block]) + 1)
	h := data[block : block+size]
	at := bytes.Index(h, []byte{0x21, 1}) // LZMA2 and the size of its properties
	if at < 0 {
		t.Fatalf("no filter in %x", h)
	}
	h[at+2] = dict
	binary.LittleEndian.PutUint32(h[size-4:], crc32.ChecksumIEEE(h[:size-4]))
	return data
}

// TestLZ4Sizes has frames and the legacy form say that a block has as many bytes
// as can be said.
func TestLZ4Sizes(t *testing.T) {
	for name, data := range map[string]string{
		"legacy": "\x02\x21\x4c\x18\xff\xff\xff\x7f",
		"frame":  "\x04\x22\x4d\x18\x64\x70\xb9\xff\xff\xff\x7f",
	} {
		n := allocated(func() {
			if got, err := First(context.Background(), []byte(data), LZ4, nil, 1<<30, newBudget(16<<30), new(Arena)); err == nil && len(got) > 0 {
				t.Errorf("%s: %d bytes", name, len(got))
			}
		})
		if n > 32<<20 {
			t.Errorf("%s: %d bytes allocated", name, n)
		}
	}
}
