// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"flag"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/limits.md")

// parse returns the syntax and the integer constants of a Go file.
func parse(t *testing.T, path string) (*ast.File, map[string]int64) {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	// Imports are missing, but constants do not depend on them.
	conf := types.Config{Error: func(error) {}}
	pkg, _ := conf.Check("p", fset, []*ast.File{f}, nil)
	values := make(map[string]int64)
	for _, name := range pkg.Scope().Names() {
		if c, ok := pkg.Scope().Lookup(name).(*types.Const); ok {
			if n, ok := constant.Int64Val(constant.ToInt(c.Val())); ok {
				values[name] = n
			}
		}
	}
	return f, values
}

// format writes "16 MiB" or "1,048,576".
func format(n int64, bytes bool) string {
	unit := ""
	if bytes {
		for _, u := range []string{" KiB", " MiB", " GiB"} {
			if n%1024 == 0 {
				n, unit = n/1024, u
			}
		}
	}
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s + unit
}

// lists returns the lists of the constants in limits.go, without those of blocks about work.
func lists(t *testing.T) string {
	file, values := parse(t, "limits.go")
	var b strings.Builder
	for _, d := range file.Decls {
		block := d.(*ast.GenDecl)
		title, text, _ := strings.Cut(strings.TrimSpace(strings.ReplaceAll(block.Doc.Text(), "\n", " ")), ": ")
		work := strings.HasPrefix(title, "Work ") // users do not count steps
		if !work {
			fmt.Fprintf(&b, "## %s\n\n%s%s\n\n", title, strings.ToUpper(text[:1]), text[1:])
		}
		list := ""
		for _, s := range block.Specs {
			c := s.(*ast.ValueSpec)
			name, what := c.Names[0].Name, strings.TrimSpace(c.Comment.Text())
			if what == "" {
				t.Errorf("%s: no comment", name)
			}
			what, bytes := strings.CutPrefix(what, "bytes ")
			what, _, _ = strings.Cut(what, "; ") // the largest real value
			list += fmt.Sprintf("- %s %s\n", format(values[name], bytes), what)
		}
		if !work {
			b.WriteString(list + "\n")
		}
	}
	return b.String()
}

// TestPage compares docs/limits.md with the constants. The introduction and the last section are written by hand; -update
// writes the rest.
func TestPage(t *testing.T) {
	const path = "../../docs/limits.md"
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	from, to := strings.Index(page, "## "), strings.Index(page, "## Archives")
	if from < 0 || to < from {
		t.Fatal("the sections are missing")
	}
	want := page[:from] + lists(t) + page[to:]
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
	} else if d := cmp.Diff(want, page); d != "" {
		t.Errorf("go test ./internal/limits -update (-want +got):\n%s", d)
	}

	seen := make(map[string]string)
	for _, row := range regexp.MustCompile("(?m)^- `([\\w.]+)`: ([\\d,]+(?: [KMG]iB)?) .+$").FindAllStringSubmatch(page[to:], -1) {
		seen[row[1]] = row[2]
	}
	for path, prefix := range map[string]string{
		"../btfa/format.go":        "btfa.",
		"../../pkg/kernel/host.go": "kernel.",
	} {
		_, values := parse(t, path)
		for name, n := range values {
			if !strings.HasPrefix(strings.ToLower(name), "max") {
				continue
			}
			if got := seen[prefix+name]; got != format(n, false) && got != format(n, true) {
				t.Errorf("%s: the page says %q, the value is %d", prefix+name, got, n)
			}
			delete(seen, prefix+name)
		}
	}
	for name := range seen {
		t.Errorf("%s: no such constant", name)
	}
}
