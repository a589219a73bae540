// SPDX-License-Identifier: Apache-2.0

package decompress

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/ulikunitz/xz"
	"github.com/ulikunitz/xz/lzma"

	"github.com/btfgen/btfgen/internal/testing/started"
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

// xzProgram returns an XZProgram that reads all .xz.
func xzProgram(t *testing.T) *XZProgram {
	t.Helper()
	x := NewXZProgram(t.Context())
	x.least = 0
	return x
}

// TestXZProgram reads damaged and undamaged data with the xz program and the decoder in Go, and compares the results.
func TestXZProgram(t *testing.T) {
	program := xzProgram(t)
	if !program.usable() {
		t.Skip("needs the xz program of XZ Utils")
	}
	text := make([]byte, 1<<20)
	for i := range text {
		text[i] = byte(i * i >> 9)
	}
	packed := compressXZ(t, text)
	changed := bytes.Clone(packed)
	changed[len(changed)/2] ^= 1
	failing := errors.New("the disk failed")
	for _, tt := range []struct {
		name  string
		src   io.Reader
		all   string // the error of all streams, a part of it; "" for none
		first string // in the first stream
	}{
		{"one stream", bytes.NewReader(packed), "", ""},
		{"two streams", bytes.NewReader(slices.Concat(packed, packed)), "", ""},
		{"padded", bytes.NewReader(slices.Concat(packed, make([]byte, 8))), "", ""},
		{"empty", bytes.NewReader(compressXZ(t, nil)), "", ""},
		{"followed by something else", bytes.NewReader(slices.Concat(packed, []byte("something else"))), "corrupt", ""},
		{"changed", bytes.NewReader(changed), "corrupt", "corrupt"},
		{"cut", bytes.NewReader(packed[:len(packed)/2]), "unexpected", "unexpected"},
		{"no .xz", strings.NewReader("no .xz"), "format", "format"},
		{"read error", io.MultiReader(bytes.NewReader(packed[:1000]), iotest.ErrReader(failing)), "the disk failed", "the disk failed"},
	} {
		data, failed := io.ReadAll(tt.src)
		for all, want := range map[bool]string{true: tt.all, false: tt.first} {
			var got [2][]byte
			var errs [2]error
			for i, xz := range []*XZProgram{nil, program} {
				src := io.Reader(bytes.NewReader(data))
				if failed != nil {
					src = io.MultiReader(src, iotest.ErrReader(failed))
				}
				r, err := open(t.Context(), bufio.NewReader(src), -1, XZ, xz, all)
				if err == nil {
					got[i], err = io.ReadAll(r)
					r.Close()
				}
				errs[i] = err
			}
			if err := errs[1]; err == nil && want != "" || err != nil && (want == "" || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s, all %t: error %v, want %q", tt.name, all, err, want)
			}
			if (errs[0] == nil) != (errs[1] == nil) {
				t.Errorf("%s, all %t: errors %v and %v", tt.name, all, errs[0], errs[1])
			}
			if errs[1] == nil && !bytes.Equal(got[0], got[1]) {
				t.Errorf("%s, all %t: %d bytes, and %d", tt.name, all, len(got[0]), len(got[1]))
			}
		}
	}
}

// TestOtherXZ checks that no program of another project is used, nor one for small data.
func TestOtherXZ(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "xz"), []byte("#!/bin/sh\necho BusyBox; exit 0\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	if xzProgram(t).takes(1 << 30) {
		t.Error("BusyBox's xz is used")
	}
	t.Setenv("PATH", "/nowhere")
	if xzProgram(t).takes(1 << 30) {
		t.Error("no xz is used")
	}
	x := NewXZProgram(t.Context())
	x.usable = func() bool { return true }
	for size, want := range map[int64]bool{-1: true, 0: false, leastProgram - 1: false, leastProgram: true} {
		if got := x.takes(size); got != want {
			t.Errorf("%d bytes: %t", size, got)
		}
	}
}

// TestHangingXZ stops waiting for a program that does not say its version.
func TestHangingXZ(t *testing.T) {
	dir := t.TempDir()
	runs := filepath.Join(dir, "runs")
	if err := os.WriteFile(filepath.Join(dir, "xz"), []byte("#!/bin/sh\n: >"+runs+"\nwhile :; do :; done\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	ctx := started.Context(t, runs)
	if NewXZProgram(ctx).takes(-1) {
		t.Error("it is used")
	}
	if ctx.Err() == nil {
		t.Error("it did not run, or ended by itself")
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
		for _, xz := range decoders(t) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r, err := Open(t.Context(), bufio.NewReader(bytes.NewReader(tt.data)), int64(len(tt.data)), tt.format, xz)
			if err == nil {
				_, err = io.Copy(io.Discard, r)
				r.Close()
			}
			if err == nil {
				t.Errorf("%s was read", tt.format)
			}
			if _, err := First(context.Background(), tt.data, tt.format, xz, 1<<30, newBudget(16<<20), new(Arena)); err == nil {
				t.Errorf("%s was read at once", tt.format)
			}
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
				t.Errorf("%s: %d bytes allocated", tt.format, n)
			}
		}
	}
}
