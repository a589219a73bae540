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

// sbin are directories of programs that the PATH of a user may lack.
var sbin = []string{"/usr/local/sbin", "/usr/sbin", "/sbin"}

// minClang is the version of clang that has all kinds of relocations: TYPE_MATCHES is the newest.
const minClang = 15

// Tool returns the path of a program ("bpftool", "gcc"): the first in PATH, or else in
// the directories for administrators, where Debian has bpftool, or else the highest
// version that is installed as NAME-VERSION.
func Tool(name string) (string, error) {
	found := tools(name)
	if len(found) == 0 {
		return "", fmt.Errorf("%s: not found in %s; on Debian: apt install %s", name, strings.Join(dirs(), ", "), name)
	}
	return found[0], nil
}

// dirs lists the directories of programs.
func dirs() []string { return append(filepath.SplitList(os.Getenv("PATH")), sbin...) }

// tools lists the programs with a name, in the order of [Tool].
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
		// An error can only come from a directory that is not a valid pattern. It has no tools.
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

// Need returns the result of [Tool] and skips the test if the program is missing.
func Need(tb testing.TB, name string) string {
	tb.Helper()
	path, err := Tool(name)
	if err != nil {
		tb.Skip(err)
	}
	return path
}

// NeedClang returns the first clang that compiles for BPF and supports all kinds of
// relocations. It skips the test if there is none.
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
