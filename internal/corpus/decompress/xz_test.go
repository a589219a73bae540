// SPDX-License-Identifier: Apache-2.0

package decompress

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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

// program returns the xz program as a decoder.
func program(t *testing.T) Decoder {
	t.Helper()
	d := FindXZ()
	if d.Program == "" {
		t.Skip("needs the xz program")
	}
	d.Always = true
	return d
}

// TestXZFile reads files with the xz program.
func TestXZFile(t *testing.T) {
	tool := program(t)
	zeros := make([]byte, 1<<20)
	withZeros := append(append([]byte("begin"), zeros...), "end"...)
	for i, want := range [][]byte{
		bytes.Repeat([]byte("x"), 2<<20),
		withZeros,
		append(make([]byte, 64<<20), withZeros...),
		withZeros,
		nil,
	} {
		pack := exec.Command("xz", "-0")
		pack.Stdin = bytes.NewReader(want)
		data, err := pack.Output()
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		in := Input{R: bufio.NewReader(f), Size: int64(len(data)), File: f, XZ: tool}
		r, err := Open(context.Background(), in, XZ)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d: %d bytes of %d, %v", i, len(got), len(want), err)
		}
		r.Close()
	}
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
		for _, d := range decoders(t) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r, err := Open(context.Background(), Input{R: bufio.NewReader(bytes.NewReader(tt.data)), Size: int64(len(tt.data)), XZ: d}, tt.format)
			if err == nil {
				_, err = io.Copy(io.Discard, r)
				r.Close()
			}
			if err == nil {
				t.Errorf("%s was read", tt.format)
			}
			to := new(Buffer)
			if err := First(context.Background(), tt.data, tt.format, d, 1<<30, NewBudget(1<<20, 0), to); err == nil {
				t.Errorf("%s was read at once", tt.format)
			}
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
				t.Errorf("%s: %d bytes allocated", tt.format, n)
			}
		}
	}
}
