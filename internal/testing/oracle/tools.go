// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// sbin are places of programs that the PATH of a user may lack.
var sbin = []string{"/usr/local/sbin", "/usr/sbin", "/sbin"}

// minClang is the version of clang that has all kinds of relocations: TYPE_MATCHES is the newest.
const minClang = 15

// Tool returns the path of the program called name ("bpftool", "gcc"): the
// first in PATH, then in the directories for administrators, where Debian has
// bpftool, then the one of the highest version that is installed as
// NAME-VERSION.
func Tool(name string) (string, error) {
	found := tools(name)
	if len(found) == 0 {
		return "", fmt.Errorf("%s: not found in %s; on Debian: apt install %s", name, strings.Join(dirs(), ", "), name)
	}
	return found[0], nil
}

// dirs lists where programs are.
func dirs() []string { return append(filepath.SplitList(os.Getenv("PATH")), sbin...) }

// tools lists the programs called name in the order in which [Tool] takes them.
func tools(name string) (found []string) {
	add := func(path string) {
		path, err := exec.LookPath(path)
		if err != nil {
			return
		}
		if path, err = filepath.Abs(path); err == nil {
			found = append(found, path)
		}
	}
	versions := make(map[string]int)
	for _, dir := range dirs() {
		add(filepath.Join(dir, name))
		// The only error is of a pattern; a directory so named has no tools.
		paths, _ := filepath.Glob(filepath.Join(dir, name+"-*"))
		for _, path := range paths {
			if v, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(path), name+"-")); err == nil {
				versions[path] = v
			}
		}
	}
	for _, path := range slices.SortedFunc(maps.Keys(versions), func(a, b string) int {
		return cmp.Or(versions[b]-versions[a], strings.Compare(a, b))
	}) {
		add(path)
	}
	return found
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

// NeedClang returns the first clang that compiles for BPF and knows all kinds
// of relocations. It skips the test, with the reason, if there is none.
func NeedClang(tb testing.TB) string {
	tb.Helper()
	found := tools("clang")
	for _, path := range found {
		version, err := exec.Command(path, "-dumpversion").Output()
		if err != nil {
			continue
		}
		major, _, _ := strings.Cut(strings.TrimSpace(string(version)), ".")
		if v, err := strconv.Atoi(major); err != nil || v < minClang {
			continue
		}
		targets, err := exec.Command(path, "--print-targets").Output()
		if err == nil && slices.Contains(strings.Fields(string(targets)), "bpf") {
			return path
		}
	}
	tb.Skipf("needs clang of version %d or newer that compiles for BPF; there is %q", minClang, found)
	return ""
}
