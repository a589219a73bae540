// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// constants returns the values of the constants of Go files, by their names.
func constants(t *testing.T, pattern string) map[string]int64 {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: no files: %v", pattern, err)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	// What the files import is not there, and constants do not depend on it.
	conf := types.Config{Error: func(error) {}}
	pkg, _ := conf.Check("p", fset, files, nil)
	out := make(map[string]int64)
	for _, name := range pkg.Scope().Names() {
		if c, ok := pkg.Scope().Lookup(name).(*types.Const); ok {
			if n, ok := constant.Int64Val(constant.ToInt(c.Val())); ok {
				out[name] = n
			}
		}
	}
	return out
}

// value reads "16 MiB" or "1,048,576".
func value(t *testing.T, s string) int64 {
	t.Helper()
	digits, unit, _ := strings.Cut(s, " ")
	n, err := strconv.ParseInt(strings.ReplaceAll(digits, ",", ""), 10, 64)
	shift, ok := map[string]int{"": 0, "KiB": 10, "MiB": 20, "GiB": 30}[unit]
	if err != nil || !ok {
		t.Errorf("%q is no value", s)
	}
	return n << shift
}

// TestPage compares docs/limits.md with the constants: all are there, with their
// values, and what it says of each is complete.
func TestPage(t *testing.T) {
	want := make(map[string]int64)
	for name, n := range constants(t, "*.go") {
		if ast.IsExported(name) {
			want[name] = n
		}
	}
	for pattern, prefix := range map[string]string{
		"../btfa/format.go":             "btfa.",
		"../../pkg/archive/tree.go":     "archive.",
		"../../pkg/kernel/osrelease.go": "kernel.",
	} {
		for name, n := range constants(t, pattern) {
			if strings.HasPrefix(strings.ToLower(name), "max") {
				want[prefix+name] = n
			}
		}
	}
	page, err := os.ReadFile("../../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, row := range regexp.MustCompile("(?m)^\\| `([\\w.]+)` \\|(.*)\\|$").FindAllSubmatch(page, -1) {
		name, cells := string(row[1]), strings.Split(string(row[2]), " | ")
		if seen[name] {
			t.Errorf("%s: twice", name)
		}
		seen[name] = true
		if len(cells) != 4 {
			t.Errorf("%s: %d cells, want 5", name, 1+len(cells))
			continue
		}
		for i, c := range cells {
			if cells[i] = strings.TrimSpace(c); cells[i] == "" {
				t.Errorf("%s: an empty cell", name)
			}
		}
		if n, ok := want[name]; !ok {
			t.Errorf("%s: there is no such constant", name)
		} else if got := value(t, cells[0]); got != n {
			t.Errorf("%s: the page says %d, the program %d", name, got, n)
		}
	}
	for name := range want {
		if !seen[name] {
			t.Errorf("%s: not on the page", name)
		}
	}
}
