// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/slow"
)

// initLine is what the runtime prints of a package's initialization.
var initLine = regexp.MustCompile(`(?m)^init (\S+) @.* clock, (\d+) bytes, (\d+) allocs$`)

// TestStartUp limits the memory that packages allocate before main. Tables and regular expressions cost memory and time,
// and only memory is the same in each run. scripts/check.sh limits what the whole program allocates.
func TestStartUp(t *testing.T) {
	slow.Skip(t)
	if runtime.GOOS == "windows" {
		t.Skip("skipped: the program would need another name")
	}
	const limit = 12_000 // bytes
	known := map[string]string{
		"github.com/klauspost/compress/flate": "tables of fixed codes",
		"github.com/mikelolasagasti/xz":       "tables of checksums",
		"github.com/russross/blackfriday/v2":  "urfave/cli renders manual pages with it",
		"go.yaml.in/yaml/v3":                  "tables of tags, and regular expressions for numbers",
	}
	cmd := exec.Command(program(t), "--version")
	cmd.Env = append(cmd.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	modules := 0
	for _, m := range initLine.FindAllStringSubmatch(string(out), -1) {
		pkg := m[1]
		if host, _, _ := strings.Cut(pkg, "/"); !strings.Contains(host, ".") {
			continue // packages of the standard library change with Go
		}
		modules++
		bytes, err := strconv.Atoi(m[2])
		if err != nil {
			t.Fatal(err)
		}
		switch _, ok := known[pkg]; {
		case bytes > limit && !ok:
			t.Errorf("%s allocates %d bytes in %s allocations before main, want at most %d", pkg, bytes, m[3], limit)
		case bytes <= limit && ok:
			t.Errorf("%s allocates %d bytes before main: no exception is needed any more", pkg, bytes)
		}
	}
	if modules < 10 {
		t.Errorf("%d packages in the trace:\n%s", modules, out)
	}
}
