// SPDX-License-Identifier: Apache-2.0

package btfgen_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/btfgen/btfgen/"

// rooms are the folders of the module from the bottom to the top. A package
// imports packages of its own room and of rooms below it.
var rooms = []string{
	"pkg/relo",
	"pkg/kernel",
	"internal/limits",
	"internal/text",
	"internal/workers",
	"internal/btf",
	"internal/bpfobj",
	"internal/core",
	"internal/minimize",
	"internal/btfa",
	"pkg/archive",
	"internal/output",
	"internal/corpus",
	"internal/check/facts",
	"internal/check",
	"internal/job",
	"internal/report",
	"pkg/relolog",
	"pkg/minimize",
	"pkg/corpus",
	"internal/testing",
	"examples",
	"cmd/btfgen-registry",
	"cmd/btfgen",
	"packaging",
}

// only lists the packages of this module that some packages may import, in addition to their own room.
// pkg/archive and pkg/kernel are linked into tracers.
var only = map[string][]string{
	"pkg/relo":            {},
	"packaging/image":     {},
	"cmd/btfgen-registry": {"internal/corpus/artifact", "internal/limits"},
	"pkg/kernel":          {},
	"pkg/archive":         {"internal/btfa", "internal/btf", "internal/btf/canonical", "pkg/kernel"},
	"pkg/archive/btfspec": {"internal/btf", "pkg/archive"},
	"pkg/relolog":         {"internal/btf", "internal/core", "internal/core/facade", "internal/limits", "pkg/relo"},
	"pkg/minimize":        {"internal/core", "internal/core/facade", "internal/minimize", "pkg/relo", "pkg/relolog"},
	"pkg/corpus":          {"internal/core", "internal/core/facade", "internal/corpus", "internal/corpus/selection", "pkg/kernel", "pkg/relolog"},
	"internal/btf":        {"internal/limits"},
	"internal/bpfobj":     {"internal/btf", "internal/limits"},
}

// TestBoundaries checks that arrows go down, and that nothing in internal imports
// a facade.
func TestBoundaries(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	used, limited := make(map[string]bool), 0
	for line := range strings.Lines(string(out)) {
		imports := strings.Fields(line)
		from, _ := strings.CutPrefix(imports[0], module)
		if from == strings.TrimSuffix(module, "/") {
			continue
		}
		may, ok := only[from]
		if ok {
			limited++
		}
		used[room(t, from)] = true
		for _, to := range imports[1:] {
			to, ours := strings.CutPrefix(to, module)
			if !ours {
				continue
			}
			if slices.Index(rooms, room(t, to)) > slices.Index(rooms, room(t, from)) {
				t.Errorf("%s imports %s, which is above it", from, to)
			}
			if ok && room(t, to) != room(t, from) && !slices.Contains(may, to) {
				t.Errorf("%s imports %s, which it must not know", from, to)
			}
			if strings.HasPrefix(from, "internal/") && (to == "pkg/relolog" || to == "pkg/minimize" || to == "pkg/corpus") {
				t.Errorf("%s imports %s, a facade for users of the Go API", from, to)
			}
		}
	}
	if len(used) != len(rooms) || limited != len(only) {
		t.Errorf("found %d of %d rooms, %d of %d limited packages", len(used), len(rooms), limited, len(only))
	}
}

// room returns the room of a package.
func room(t *testing.T, path string) string {
	t.Helper()
	best := ""
	for _, r := range rooms {
		if (path == r || strings.HasPrefix(path, r+"/")) && len(r) > len(best) {
			best = r
		}
	}
	if best == "" {
		t.Fatalf("%s is in no room", path)
	}
	return best
}

// TestFiles checks that no two files of these packages need each other, directly or not, by the names that they use of
// each other: types, functions, variables and constants, not methods.
func TestFiles(t *testing.T) {
	for dir, layers := range map[string]int{
		"internal/core": 5, "internal/corpus": 5, "internal/corpus/find": 2, "internal/corpus/image": 2, "internal/corpus/naming": 3,
		"internal/corpus/pahole": 2, "internal/corpus/selection": 2, "internal/corpus/unpack": 3,
	} {
		t.Run(path.Base(dir), func(t *testing.T) { checkFiles(t, dir, layers) })
	}
}

// checkFiles checks the files of a package, which have at least so many layers.
func checkFiles(t *testing.T, dir string, least int) {
	paths, err := filepath.Glob(dir + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	declared, unresolved := make(map[string]string), make(map[string][]*ast.Ident) // files by name, names by file
	for _, p := range paths {
		if strings.HasSuffix(p, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for name := range f.Scope.Objects {
			declared[name] = p
		}
		unresolved[p] = f.Unresolved
	}
	needs := make(map[string]map[string]string) // the name, by the file that uses it and the one that declares it
	for p, names := range unresolved {
		needs[p] = make(map[string]string)
		for _, id := range names {
			if to := declared[id.Name]; to != "" {
				needs[p][to] = id.Name
			}
		}
	}
	layers := 0
	for len(needs) > 0 { // files that need no other that is left go first
		before, above := len(needs), maps.Clone(needs)
		for p, to := range needs {
			maps.DeleteFunc(to, func(q, _ string) bool { return needs[q] == nil })
			if len(to) == 0 {
				delete(above, p)
			}
		}
		needs = above
		if layers++; len(needs) == before {
			t.Fatalf("these files need each other: %q", needs)
		}
	}
	if layers < least {
		t.Errorf("the files are in %d layers, so that names were not found", layers)
	}
}
