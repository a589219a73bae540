// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
)

// hugeInput is the size in bytes of the forged files of earlier runs.
const hugeInput = 3 << 20

// hugeInputs returns forged files for each option that reads the output of an earlier run. A careless reader would allocate
// many times their size.
func hugeInputs() map[string]map[string]string {
	list := func(before, element, after string) string {
		n := (hugeInput - len(before) - len(after)) / (len(element) + 1)
		return before + strings.Repeat(element+",", n-1) + element + after
	}
	sum := `"` + strings.Repeat("0", 64) + `"`
	return map[string]map[string]string{
		"manifest": {
			"kernels":   list(`{"kernels":[`, `{}`, `]}`),
			"issues":    list(`{"issues":[`, `{}`, `]}`),
			"of kernel": list(`{"kernels":[{"kernel":"debian/12/x86_64/6.1","source_sha256":[`+sum+`],"sha256":`+sum+`,"issues":[`, `0`, `]}],"issues":[{"object":"a","relocation":"b","result":"error"}]}`),
			"sources":   list(`{"kernels":[{"kernel":"debian/12/x86_64/6.1","source_sha256":[`, sum, `]}]}`),
			"unknown":   list(`{"later":[`, `{"a":[]}`, `]}`),
			"depth":     strings.Repeat(`{"a":`, hugeInput/5),
			"text":      list(`{"tool":"`, `a`, `"}`),
		},
		"baseline": {
			"kernels":  list(`{"version":1,"kernels":[`, `{}`, `]}`),
			"programs": list(`{"version":1,"programs":[`, `{}`, `]}`),
			"findings": list(`{"version":1,"programs":[{"object":"a","program":"b","findings":[`, `{}`, `]}]}`),
			"notes":    list(`{"version":1,"programs":[{"object":"a","program":"b","notes":[`, `{}`, `]}]}`),
			"status":   list(`{"version":1,"programs":[{"object":"a","program":"b","status":[`, `"ok"`, `]}]}`),
			"skipped":  list(`{"version":1,"skipped":[`, `{}`, `]}`),
		},
	}
}

// Forged files of earlier runs take memory in proportion to their size, and are read before the work begins. Errors name
// the file.
func TestHugeInputs(t *testing.T) {
	slow.Skip(t)
	raceflag.SkipSerial(t)
	const most = 80<<20 + 40*hugeInput // bytes allocated in all; up to 60 MB without such a file
	dir := t.TempDir()
	kernel := "../../testdata/vmlinux/debian/12/x86_64/6.1.0-47-amd64.btf.zst"
	object := "../../testdata/bpf/tcplife.bpfel.o"
	old := filepath.Join(dir, "old.btfa")
	if s := run(t.Context(), []string{"generate", "--btf", kernel, "-o", old, object}, io.Discard, io.Discard); s != statusOK {
		t.Fatal(s)
	}
	for option, files := range hugeInputs() {
		for name, content := range files {
			path := filepath.Join(dir, option+".json")
			if option == "manifest" {
				path = strings.TrimSuffix(old, ".btfa") + ".json"
			}
			if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
				t.Fatal(err)
			}
			args := map[string][]string{
				"manifest": {"generate", "--btf", kernel, "-o", filepath.Join(dir, "out.btfa"), "--reuse", old, object},
				"baseline": {"check", "--btf", kernel, "--baseline", path, object},
			}[option]
			var stdout, stderr bytes.Buffer
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			status := run(t.Context(), args, &stdout, &stderr)
			runtime.ReadMemStats(&after)
			took := after.TotalAlloc - before.TotalAlloc
			t.Logf("%s, %s: %d MB, status %d: %.200s", option, name, took>>20, status, &stderr)
			if took > most {
				t.Errorf("%s, %s: %d MB allocated, want %d at most", option, name, took>>20, most>>20)
			}
			refused := status == statusUsage && option == "baseline" || status == statusFailed && option != "baseline"
			if refused && !strings.Contains(stderr.String(), path) {
				t.Errorf("%s, %s: the message does not name the file: %s", option, name, &stderr)
			}
			if refused && stdout.Len() > 0 {
				t.Errorf("%s, %s: refused after the work", option, name)
			}
			if !refused && status != statusOK && status != statusFindings {
				t.Errorf("%s, %s: exit status %d: %s", option, name, status, &stderr)
			}
		}
	}
}
