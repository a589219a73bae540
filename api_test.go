// SPDX-License-Identifier: Apache-2.0

package btfgen_test

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPublicAPI holds that who imports pkg/... can name every type that is shown:
// none of what is exported leads to a type of an internal package.
func TestPublicAPI(t *testing.T) {
	out, err := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "./pkg/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	var public []string
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[path] = file
		if strings.HasPrefix(path, module+"pkg/") {
			public = append(public, path)
		}
	}
	imp := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(files[path]) })
	for _, path := range public {
		p, err := imp.Import(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range leaks(p) {
			t.Errorf("%s: %s", strings.TrimPrefix(path, module), l)
		}
	}
	if len(public) < 5 {
		t.Errorf("only %d packages: %v", len(public), public)
	}
}

// leaks lists the ways from what a package exports to types of internal packages.
func leaks(p *types.Package) []string {
	l := leakFinder{of: p, seen: make(map[types.Type]bool)}
	for _, name := range p.Scope().Names() {
		if o := p.Scope().Lookup(name); o.Exported() {
			l.object(o.Name(), o)
		}
	}
	slices.Sort(l.found)
	return slices.Compact(l.found)
}

type leakFinder struct {
	of    *types.Package
	seen  map[types.Type]bool // named types of the package
	found []string
}

func (l *leakFinder) object(at string, o types.Object) {
	if name, ok := o.(*types.TypeName); ok && name.IsAlias() {
		l.visit(at, types.Unalias(o.Type()))
		return
	}
	l.visit(at, o.Type())
}

// visit follows a type as far as an importer can.
func (l *leakFinder) visit(at string, t types.Type) {
	switch t := types.Unalias(t).(type) {
	case *types.Named:
		l.named(at, t)
	case interface{ Elem() types.Type }: // pointer, slice, array, channel, map
		if m, ok := t.(*types.Map); ok {
			l.visit(at, m.Key())
		}
		l.visit(at, t.Elem())
	case *types.Signature:
		l.typeParams(at, t.TypeParams())
		l.visit(at, t.Params())
		l.visit(at, t.Results())
	case *types.Tuple:
		for v := range t.Variables() {
			l.visit(at, v.Type())
		}
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() || f.Embedded() {
				l.visit(at+"."+f.Name(), f.Type())
			}
		}
	case *types.Interface:
		for e := range t.EmbeddedTypes() {
			l.visit(at, e)
		}
		for m := range t.Methods() {
			if m.Exported() {
				l.visit(at+"."+m.Name(), m.Type())
			}
		}
	case *types.Union:
		for term := range t.Terms() {
			l.visit(at, term.Type())
		}
	}
}

// named reports an internal type, and looks into one of the package itself, be it
// exported or handed out by what is. Those of other packages are theirs to answer
// for.
func (l *leakFinder) named(at string, t *types.Named) {
	for a := range t.TypeArgs().Types() {
		l.visit(at, a)
	}
	p := t.Obj().Pkg()
	switch {
	case p == nil: // error
		return
	case p.Path() != l.of.Path():
		if strings.Contains("/"+p.Path()+"/", "/internal/") {
			l.found = append(l.found, fmt.Sprintf("%s shows %s", at, types.TypeString(t, nil)))
		}
		return
	case l.seen[t]:
		return
	}
	l.seen[t] = true
	l.typeParams(t.Obj().Name(), t.TypeParams())
	l.visit(t.Obj().Name(), t.Underlying())
	for m := range types.NewMethodSet(types.NewPointer(t)).Methods() {
		if m.Obj().Exported() {
			l.visit(t.Obj().Name()+"."+m.Obj().Name(), m.Type())
		}
	}
}

func (l *leakFinder) typeParams(at string, list *types.TypeParamList) {
	for p := range list.TypeParams() {
		l.visit(at, p.Constraint())
	}
}

// TestDocComments checks that each exported name of a public package has a comment
// that begins with it. A group of constants or variables has one comment.
func TestDocComments(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", "{{.Dir}} {{join .GoFiles \" \"}}", "./pkg/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for line := range strings.Lines(string(out)) {
		dir, names, _ := strings.Cut(strings.TrimSpace(line), " ")
		fset := token.NewFileSet()
		var files []*ast.File
		for _, name := range strings.Fields(names) {
			f, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		p, err := doc.NewFromFiles(fset, files, dir)
		if err != nil {
			t.Fatal(err)
		}
		check := func(name, text string) {
			checked++
			if !strings.HasPrefix(text, name+" ") {
				t.Errorf("%s: the comment of %s begins %.40q", p.Name, name, text)
			}
		}
		if !strings.HasPrefix(p.Doc, "Package "+p.Name+" ") {
			t.Errorf("%s: the comment of the package begins %.40q", p.Name, p.Doc)
		}
		values := slices.Concat(p.Consts, p.Vars)
		funcs := slices.Clone(p.Funcs)
		for _, typ := range p.Types {
			check(typ.Name, typ.Doc)
			values = slices.Concat(values, typ.Consts, typ.Vars)
			funcs = slices.Concat(funcs, typ.Funcs, typ.Methods)
		}
		for _, f := range funcs {
			check(f.Name, f.Doc)
		}
		for _, v := range values {
			if len(v.Names) == 1 {
				check(v.Names[0], v.Doc)
			} else if v.Doc == "" {
				t.Errorf("%s: %v have no comment", p.Name, v.Names)
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d names", checked)
	}
}

// TestLeaks tries leaks on a package that has each there may be.
func TestLeaks(t *testing.T) {
	fset := token.NewFileSet()
	check := func(path, src string, imp types.Importer) *types.Package {
		f, err := parser.ParseFile(fset, path, src, 0)
		if err != nil {
			t.Fatal(err)
		}
		p, err := (&types.Config{Importer: imp}).Check(path, fset, []*ast.File{f}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	hidden := check("m/internal/h", `package h
		type T struct{}
		func (T) M() U { return U{} }
		type U struct{}
		const C U2 = 1
		type U2 int`, nil)
	got := leaks(check("m/pkg/p", `package p
		import "m/internal/h"
		var Var []h.T
		const Const = h.C
		type Alias = h.T
		func Param(map[h.T]int) {}
		func Result() (error, chan *h.T) { return nil, nil }
		func Generic[X interface{ h.T | ~int }]() {}
		func Callback(func(yield func(h.T) bool)) {}
		type Struct struct { Field h.T; ok h.T }
		type Interface interface { Method() h.T; ok() h.T }
		type Method struct{}
		func (*Method) Shown() h.T { return h.T{} }
		func (Method) ok() h.T { return h.T{} }
		type Embedder struct { embedded }
		type embedded struct { Promoted h.T }
		func (embedded) PromotedMethod() h.T { return h.T{} }
		func HandsOut() handed { return handed{} }
		type handed struct{ Field h.T }
		type Arg struct{ Field Of[h.T] }
		type Of[X any] struct{ x X }
		type Chain struct{ Next *Chain }
		type fine struct { Field h.T }
		func fineToo() h.T { return h.T{} }
		type Fine struct { hidden h.T; f func() h.T }`, importerFunc(func(string) (*types.Package, error) { return hidden, nil })))
	want := []string{
		"Alias", "Arg.Field", "Callback", "Const", "Embedder.PromotedMethod", "Generic", "Interface.Method", "Method.Shown",
		"Param", "Result", "Struct.Field", "Var", "embedded.Promoted", "embedded.PromotedMethod", "handed.Field",
	}
	var at []string
	for _, l := range got {
		before, _, _ := strings.Cut(l, " ")
		at = append(at, before)
	}
	if !slices.Equal(at, want) {
		t.Errorf("got  %q\nwant %q", at, want)
	}
}

type importerFunc func(path string) (*types.Package, error)

func (f importerFunc) Import(path string) (*types.Package, error) { return f(path) }
