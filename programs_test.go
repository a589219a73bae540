// SPDX-License-Identifier: Apache-2.0

package btfgen_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestPrograms checks that no package but internal/workers/program starts other programs. Tests and their helpers may.
func TestPrograms(t *testing.T) {
	starts := map[string]bool{
		"os.StartProcess": true, "syscall.ForkExec": true, "syscall.StartProcess": true, "syscall.Exec": true,
		"unix.Exec": true, "plugin.Open": true,
	}
	files, starters := 0, 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		path = filepath.ToSlash(path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path == ".git" || path == "internal/testing" || d.Name() == "testdata"):
			return fs.SkipDir
		case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files++
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		allowed := filepath.Dir(path) == "internal/workers/program"
		for _, i := range f.Imports {
			if i.Path.Value != `"os/exec"` {
				continue
			}
			starters++
			if !allowed {
				t.Errorf("%s imports os/exec", path)
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := s.X.(*ast.Ident); ok && starts[x.Name+"."+s.Sel.Name] {
				t.Errorf("%s calls %s.%s", path, x.Name, s.Sel.Name)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 100 || starters == 0 {
		t.Errorf("%d files, %d of which import os/exec", files, starters)
	}
}
