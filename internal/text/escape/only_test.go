// SPDX-License-Identifier: Apache-2.0

package escape

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestOnly checks that packages with output use this one.
func TestOnly(t *testing.T) {
	dirs := []string{"cmd/btfgen", "internal/job/generate", "internal/job/lint", "internal/report/logs", "internal/report", "internal/job/verify"}
	calls := 0
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join("../../..", dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", dir, len(files), err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				switch x, ok := s.X.(*ast.Ident); {
				case !ok:
				case x.Name == "escape":
					calls++
				case x.Name == "fmt" && (strings.HasPrefix(s.Sel.Name, "Fprint") || strings.HasPrefix(s.Sel.Name, "Print")),
					x.Name == "json" && s.Sel.Name == "NewEncoder" && filepath.Base(name) != "html.go": // its names are escaped before
					t.Errorf("%s: %s.%s, want package escape's", set.Position(s.Pos()), x.Name, s.Sel.Name)
				}
				return true
			})
		}
	}
	if calls < 50 {
		t.Errorf("%d calls of package escape found", calls)
	}
}
