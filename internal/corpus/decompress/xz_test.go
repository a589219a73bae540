// SPDX-License-Identifier: Apache-2.0

package decompress

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"runtime"
	"testing"

	"github.com/ulikunitz/xz"
	"github.com/ulikunitz/xz/lzma"
)

func compressXZ(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := xz.NewWriter(&b)
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

// hugeXZ is a small .xz that says it needs a dictionary of 1 GiB.
func hugeXZ(t *testing.T) []byte {
	t.Helper()
	return withDictionary(t, compressXZ(t, []byte("x")), 36) // 2 << (36/2 + 11)
}

// hugeLZMA is a .lzma that does so.
func hugeLZMA(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := lzma.NewWriter(&b)
	if err == nil {
		_, err = w.Write([]byte("x"))
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	binary.LittleEndian.PutUint32(b.Bytes()[1:], 1<<30)
	return b.Bytes()
}

// TestHuge checks that no decoder gets a dictionary or window of 1 GiB.
func TestHuge(t *testing.T) {
	for _, tt := range []struct {
		format Format
		data   []byte
	}{
		{XZ, hugeXZ(t)},
		{LZMA, hugeLZMA(t)},
		// A window of 1 << (10 + 20) bytes, and a last block of one raw byte.
		{Zstd, []byte{0x28, 0xb5, 0x2f, 0xfd, 0, 20 << 3, 1<<3 | 1, 0, 0, 'x'}},
	} {
		if got := Sniff(tt.data); got != tt.format {
			t.Errorf("%s looks like %s", tt.format, got)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := Open(bufio.NewReader(bytes.NewReader(tt.data)), tt.format)
		if err == nil {
			_, err = io.Copy(io.Discard, r)
			r.Close()
		}
		if err == nil {
			t.Errorf("%s was read", tt.format)
		}
		to := new(Buffer)
		if err := First(context.Background(), tt.data, tt.format, 1<<30, newBudget(16<<20), to); err == nil {
			t.Errorf("%s was read at once", tt.format)
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
			t.Errorf("%s: %d bytes allocated", tt.format, n)
		}
	}
}
