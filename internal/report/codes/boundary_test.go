// SPDX-License-Identifier: Apache-2.0

package codes

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/pkg/relo"
)

// TestSentencesStayHere holds that no package makes, compares or searches a sentence of a finding: only internal/report and the program
// itself import the packages that make one, and the program only prints it. No other file has a sentence of the table, and no argument of
// a finding is the text of an error.
func TestSentencesStayHere(t *testing.T) {
	const root = "../../.."
	sentences := make(map[string]bool)
	for _, f := range Families() {
		for _, e := range f.Codes {
			if !strings.Contains(e.Text, "{{") && strings.Contains(e.Text, " ") {
				sentences[e.Text] = true
			}
		}
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[relo.Reason](), reflect.TypeFor[rule.Args]()} {
		for i := range typ.NumField() {
			// Names of codes, of causes, of the words of an enumeration, and of what objects and kernels have.
			names := []string{"Code", "Cause", "Doubt", "Reach", "When", "Stops", "Decided", "Witness", "Name", "Names", "Other", "Where", "Local", "Target"}
			if f := typ.Field(i); f.Type.Kind() == reflect.String && !slices.Contains(names, f.Name) {
				t.Errorf("%s: %s may hold a text", typ, f.Name)
			}
		}
	}
	files := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == "testdata" || d.Name() == ".git") {
			if err == nil {
				err = fs.SkipDir
			}
			return err
		}
		rel, _ := filepath.Rel(root, path)
		rel = filepath.ToSlash(rel)
		if !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") || strings.HasPrefix(rel, "internal/report/") {
			return nil
		}
		files++
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		for _, i := range f.Imports {
			p, _ := strconv.Unquote(i.Path.Value)
			if (strings.HasSuffix(p, "/internal/report") || strings.HasSuffix(p, "/internal/report/codes")) && !strings.HasPrefix(rel, "cmd/btfgen/") {
				t.Errorf("%s imports %s", rel, p)
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); err == nil && sentences[text] {
					t.Errorf("%s: %q is a sentence of codes.txt", set.Position(n.Pos()), text)
				}
			case *ast.BinaryExpr:
				if comparison := n.Op == token.EQL || n.Op == token.NEQ; comparison && (isSentence(n.X) || isSentence(n.Y)) {
					t.Errorf("%s: a sentence is compared", set.Position(n.Pos()))
				}
			case *ast.SwitchStmt:
				if n.Tag != nil && isSentence(n.Tag) {
					t.Errorf("%s: a sentence is compared", set.Position(n.Pos()))
				}
			case *ast.CompositeLit:
				if isArguments(n.Type) && makesText(n) {
					t.Errorf("%s: a finding has the text of an error", set.Position(n.Pos()))
				}
			case *ast.CallExpr:
				if name, ok := selected(n.Fun); ok && name == [2]string{"relo", "Cause"} {
					t.Errorf("%s: a cause is made of a text", set.Position(n.Pos()))
				}
				if name, ok := selected(n.Fun); ok && (name[0] == "strings" || name[0] == "regexp") {
					for _, a := range n.Args {
						if isSentence(a) {
							t.Errorf("%s: a sentence is searched or cut", set.Position(n.Pos()))
						}
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil || files < 100 {
		t.Errorf("%d files, %v", files, err)
	}
}

// isArguments reports whether a type is that of a finding's arguments, by its name.
func isArguments(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "Reason" || e.Name == "Args" || e.Name == "fault"
	case *ast.SelectorExpr:
		return isArguments(e.Sel)
	}
	return false
}

// makesText reports whether an expression takes the text of an error or formats one.
func makesText(e ast.Expr) (text bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			s, ok := call.Fun.(*ast.SelectorExpr)
			text = text || ok && (s.Sel.Name == "Error" || strings.HasPrefix(s.Sel.Name, "Sprint"))
		}
		return true
	})
	return text
}

// selected returns PACKAGE and NAME of a PACKAGE.NAME.
func selected(e ast.Expr) (name [2]string, ok bool) {
	if s, is := e.(*ast.SelectorExpr); is {
		if x, is := s.X.(*ast.Ident); is {
			return [2]string{x.Name, s.Sel.Name}, true
		}
	}
	return name, false
}

// isSentence reports whether an expression is a call that makes a sentence.
func isSentence(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	name, ok := selected(call.Fun)
	made := map[[2]string]bool{{"codes", "Sentence"}: true, {"codes", "Reason"}: true, {"report", "Sentence"}: true, {"report", "Reason"}: true, {"report", "CauseText"}: true}
	return ok && made[name]
}
