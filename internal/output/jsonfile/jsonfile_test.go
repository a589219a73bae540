// SPDX-License-Identifier: Apache-2.0

package jsonfile

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/limits"
)

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	var v struct{ A []int }
	if err := Read(t.Context(), path, 1<<20, "a test", &v); !errors.Is(err, os.ErrNotExist) || err.Error() != path+": no such file or directory" {
		t.Error(err)
	}
	for text, want := range map[string]string{
		`{"a":[1]} `:                      "",
		``:                                path + ": not a test: unexpected end of JSON input",
		`x`:                               path + ": not a test: invalid character 'x' looking for beginning of value",
		`{} {}`:                           path + ": not a test: invalid character '{' after top-level value",
		strings.Repeat(" ", 1<<20) + `{}`: path + ": too large: has more than 1 MiB",
	} {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := Read(t.Context(), path, 1<<20, "a test", &v); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%.10s: %v", text, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Read(ctx, path, 1<<20, "a test", &v); err != context.Canceled {
		t.Error(err)
	}
}

// TestReadMemory holds that a file of many small objects is refused, and that reading takes memory in proportion to the limit.
func TestReadMemory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	var v struct {
		Rows []struct {
			A, B, C string
			D       []int
		}
	}
	for n, want := range map[int]bool{limits.EarlierObjects - 1: true, limits.EarlierObjects: false} {
		text := []byte(`{"rows":[` + strings.Repeat("{},", n-1) + `{}]}`)
		if err := os.WriteFile(path, text, 0o666); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := Read(t.Context(), path, limits.ReportBytes, "a test", &v)
		runtime.ReadMemStats(&after)
		if (err == nil) != want || after.TotalAlloc-before.TotalAlloc > 6*limits.ReportBytes {
			t.Errorf("%d objects: %v; took %d bytes", n, err, after.TotalAlloc-before.TotalAlloc)
		}
	}
	if err := os.WriteFile(path, bytes.Repeat([]byte("["), 1<<20), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := Read(t.Context(), path, limits.ReportBytes, "a test", new(any)); err == nil {
		t.Error("values in each other without end")
	}
}
