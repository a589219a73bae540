// SPDX-License-Identifier: Apache-2.0

package btfgen_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// starters are the packages and files outside package workers that start goroutines, and what these do.
var starters = map[string]string{
	"cmd/btfgen-registry":                   "another program, whose tests are not serial",
	"cmd/btfgen/signal.go":                  "waits for signals",
	"examples":                              "programs that start from this code",
	"internal/corpus/decompress/program.go": "feeds a program, through a pipe, while its output is read",
	"internal/testing":                      "only for tests",
}

// TestGoroutines checks that code starts goroutines with package workers alone, which counts them, and that tests that claim to be
// serial start none: see raceflag.SkipSerial.
func TestGoroutines(t *testing.T) {
	used, claims, found := make(map[string]bool), 0, 0
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(file) != ".go" {
			return err
		}
		file = filepath.ToSlash(file)
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, file, nil, 0)
		if err != nil {
			return err
		}
		for _, decl := range f.Decls {
			starts, claim := goroutines(decl)
			claims += len(claim)
			found += len(starts)
			switch {
			case strings.HasPrefix(file, "internal/workers/"):
			case strings.HasSuffix(file, "_test.go"):
				if len(claim) > 0 && len(starts) > 0 {
					t.Errorf("%s starts a goroutine in a test that claims to be serial", fset.Position(starts[0]))
				}
			case len(starts) > 0:
				if at := starter(file); at != "" {
					used[at] = true
					continue
				}
				t.Errorf("%s starts a goroutine without package workers", fset.Position(starts[0]))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for at := range starters {
		if !used[at] {
			t.Errorf("%s starts no goroutine", at)
		}
	}
	if claims < 50 || found < 10 {
		t.Errorf("found %d claims and %d goroutines", claims, found)
	}
}

// starter returns the entry of starters that has a file, "" for none.
func starter(file string) string {
	for at := file; at != "."; at = path.Dir(at) {
		if starters[at] != "" {
			return at
		}
	}
	return ""
}

// goroutines returns the places in a declaration that start goroutines: go statements, and calls of a method Go, as those of
// sync.WaitGroup and errgroup.Group; and those that call raceflag.SkipSerial.
func goroutines(decl ast.Decl) (starts, claims []token.Pos) {
	ast.Inspect(decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			starts = append(starts, n.Pos())
		case *ast.CallExpr:
			if sel, ok := n.Fun.(*ast.SelectorExpr); ok {
				switch sel.Sel.Name {
				case "Go":
					starts = append(starts, n.Pos())
				case "SkipSerial":
					claims = append(claims, n.Pos())
				}
			}
		}
		return true
	})
	return starts, claims
}
