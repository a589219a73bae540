// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// sbin are places of programs that the PATH of a user may lack.
var sbin = []string{"/usr/local/sbin", "/usr/sbin", "/sbin"}

// Tool returns the path of the program called name ("bpftool", "clang"): the
// first in PATH, then in the directories for administrators, where Debian has
// bpftool, then the one of the highest version that is installed as
// NAME-VERSION.
func Tool(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return filepath.Abs(path)
	}
	return search(name, append(filepath.SplitList(os.Getenv("PATH")), sbin...))
}

func search(name string, dirs []string) (string, error) {
	for _, dir := range dirs {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return filepath.Abs(path)
		}
	}
	best, highest := "", -1
	for _, dir := range dirs {
		// The only error is of a pattern; a directory so named has no tools.
		paths, _ := filepath.Glob(filepath.Join(dir, name+"-*"))
		for _, path := range paths {
			v, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(path), name+"-"))
			if err != nil || v <= highest {
				continue
			}
			if path, err := exec.LookPath(path); err == nil {
				best, highest = path, v
			}
		}
	}
	if best == "" {
		return "", fmt.Errorf("%s: not found in %s; on Debian: apt install %s", name, strings.Join(dirs, ", "), name)
	}
	return filepath.Abs(best)
}

// Need returns what [Tool] does and skips the test, with the reason, if the
// program is missing.
func Need(tb testing.TB, name string) string {
	tb.Helper()
	path, err := Tool(name)
	if err != nil {
		tb.Skip(err)
	}
	return path
}
