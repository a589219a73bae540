// SPDX-License-Identifier: Apache-2.0

package codes

import (
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/pkg/relo"
)

var update = flag.Bool("update", false, "write docs/findings.md")

// TestDocument holds docs/findings.md equal to the table. Run it with -update to write the file.
func TestDocument(t *testing.T) {
	const path = "../../../docs/findings.md"
	got := document()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("docs/findings.md is not up to date, run: go test ./internal/report/codes -update\n%s", d)
	}
}

// document returns docs/findings.md: a table of codes for each family. Each code is an anchor, to which reports link.
func document() string {
	b := new(strings.Builder)
	b.WriteString("# Findings\n\n<!-- Made by `go test ./internal/report/codes -update` from codes.txt. -->\n\n" +
		"Every finding of `check` and every reason in a relocation log has a code, the same in all formats. Codes do not change.\n" +
		"`--fail-on` takes them ([classes](cli.md#exit-status)), and `btfgen explain CODE` prints one entry. The fix and example\n" +
		"above a table are for its codes without their own.\n")
	before := new(Family)
	for _, f := range Families() {
		fmt.Fprintf(b, "\n## %s\n", f.Title)
		if f.Means != "" {
			fmt.Fprintf(b, "\n%s\n", f.Means)
		}
		fix, example := f.Fix, f.Example
		if fix == before.Fix {
			fix = "As above."
		}
		if example == before.Example {
			example = ""
		}
		if fix != "" {
			fmt.Fprintf(b, "\n*Fix:* %s\n", fix)
		}
		if example != "" {
			fmt.Fprintf(b, "\n    %s\n", strings.ReplaceAll(example, "\n", "\n    "))
		}
		before = f
		b.WriteString("\n| code | meaning | fix |\n|---|---|---|\n")
		above := new(Entry)
		for _, e := range f.Codes {
			fix, example := e.Fix, e.Example
			if fix == f.Fix {
				fix = ""
			}
			if example == f.Example {
				example = ""
			}
			if fix != "" && e.Fix == above.Fix && e.Example == above.Example {
				fix, example = "As above.", ""
			}
			fmt.Fprintf(b, "| <a id=\"%s\"></a>`%s` | %s | %s |\n", e.Code, e.Code, e.Means, strings.ReplaceAll(strings.TrimSpace(fix+" "+lines(example)), "|", `\|`))
			above = e
		}
	}
	return b.String()
}

// lines returns lines of code for a cell of a table.
func lines(code string) string {
	var all []string
	for line := range strings.SplitSeq(code, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, "`"+line+"`")
		}
	}
	return strings.Join(all, "<br>")
}

// declared returns the values of the constants of a type in a file.
func declared(t *testing.T, path, name string) (all []string) {
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == 1 {
			if typ, ok := v.Type.(*ast.Ident); ok && typ.Name == name {
				text, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, text)
			}
		}
		return true
	})
	return all
}

// TestCodes wants an entry for every code and a code for every entry, with all fields.
func TestCodes(t *testing.T) {
	known := make(map[relo.Code]bool)
	for _, path := range []string{"../../../pkg/relo/reason.go", "../../check/rule/codes.go"} {
		all := declared(t, path, "Code")
		if len(all) < 20 {
			t.Errorf("%s: only %d codes", path, len(all))
		}
		for _, text := range all {
			c := relo.Code(text)
			if known[c] {
				t.Errorf("%s is declared twice", c)
			}
			known[c] = true
			if Of(c) == nil {
				t.Errorf("%s is not in codes.txt", c)
			}
		}
	}
	for _, f := range Families() {
		for _, e := range f.Codes {
			if !known[e.Code] {
				t.Errorf("%s is no code of the program", e.Code)
			}
			if e.Title == "" || e.Text == "" || e.Means == "" || e.Fix == "" || e.Example == "" {
				t.Errorf("%s: a field is empty: %+v", e.Code, e)
			}
			if !regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`).MatchString(string(e.Code)) {
				t.Errorf("%s is not a word with dashes", e.Code)
			}
			if f := rule.FamilyOf(e.Code); f != rule.FamilyCORE && string(f) != e.Family.Name {
				t.Errorf("%s is in family %s, want %s", e.Code, e.Family.Name, f)
			}
		}
	}
}

// TestCauses wants a sentence for every cause and a cause for every sentence, and the same causes in the schemas.
func TestCauses(t *testing.T) {
	want := declared(t, "../../../pkg/relo/reason.go", "Cause")
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(parsed().causes)); !slices.Equal(got, want) {
		t.Errorf("codes.txt has %q, package relo %q", got, want)
	}
	for _, name := range []string{"check", "relolog"} {
		data, err := os.ReadFile("../../../docs/schema/" + name + ".schema.json")
		if err != nil {
			t.Fatal(err)
		}
		var schema struct {
			Defs struct{ Cause struct{ Enum []string } } `json:"$defs"`
		}
		if err := json.Unmarshal(data, &schema); err != nil {
			t.Fatal(err)
		}
		got := schema.Defs.Cause.Enum
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: the schema has %q, package relo %q", name, got, want)
		}
	}
}

// TestSentences executes every template, so that none names an argument that does not exist.
func TestSentences(t *testing.T) {
	args := rule.Args{Name: "name", Cause: relo.CauseOperand, LocalNumber: 7, TargetNumber: 9, Names: "a,b,c", Offset: 1, Size: 8, Count: 3, Max: 4, Since: 6<<16 | 1<<8}
	reason := relo.Reason{Name: "name", Local: "local", Target: "target", LocalNumber: 7, TargetNumber: 9, Cause: relo.CauseOperand}
	for _, f := range Families() {
		for _, e := range f.Codes {
			var data any = args
			if f.Name == "candidate" {
				data = reason
			}
			for _, text := range []string{Sentence(e.Code, data), fill(string(e.Code), e.Text, data)} {
				if text == string(e.Code) || strings.ContainsAny(text, "{}") && !strings.Contains(e.Text, "{…}") {
					t.Errorf("%s: %q from %q", e.Code, text, e.Text)
				}
			}
			if e.Log != "" {
				reason.Code = e.Code
				if text := Reason(&reason); !strings.Contains(text, "7 and 9") || !strings.HasSuffix(text, " ["+string(e.Code)+"]") {
					t.Errorf("%s: %q", e.Code, text)
				}
			}
		}
	}
	for c := range parsed().causes {
		args.Cause = relo.Cause(c)
		if text := Sentence(relo.UnpatchableInsn, args); !strings.Contains(text, " ") || strings.ContainsAny(text, "{}") {
			t.Errorf("%s: %q", c, text)
		}
	}
	if text := Sentence("no-such-code", nil); text != "no-such-code" || Reason(nil) != "" {
		t.Error(text)
	}
}

// TestLines checks that texts are one line: reports put them into lines of their own, where a newline would be printed as \n.
func TestLines(t *testing.T) {
	for _, f := range Families() {
		for _, e := range f.Codes {
			for _, text := range []string{e.Title, e.Text, e.Log, e.Means, e.Fix} {
				if strings.Contains(text, "\n") {
					t.Errorf("%s: %q", e.Code, text)
				}
			}
		}
	}
}
