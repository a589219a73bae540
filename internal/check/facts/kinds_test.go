// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/testinput"
)

// The table of kinds in docs/accuracy.md is between these lines.
const (
	tableBegin = "<!-- kinds of facts: go test ./internal/check/facts -update -->\n"
	tableEnd   = "<!-- end -->\n"
)

// basis counts on what the rows of a table rest.
func (t *table) basis(file string) string {
	var witnessed, hinted, set, dated int
	for _, r := range t.rows {
		sure, unsure := 0, 0
		for _, w := range r.witnesses {
			if w.role == certain {
				sure++
			} else {
				unsure++
			}
		}
		switch {
		case r.entry.file != file:
		case sure > 0:
			witnessed++
		case unsure > 0:
			hinted++
		case r.Setting != "":
			set++
		default:
			dated++
		}
	}
	var l []string
	for _, c := range []struct {
		n    int
		what string
	}{{witnessed, "by a witness"}, {hinted, "by a witness that may be missing"}, {set, "by a setting"}, {dated, "by the release"}} {
		if c.n > 0 {
			l = append(l, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	return strings.Join(l, ", ")
}

// kindTable returns the kinds of facts as a table in Markdown.
func kindTable() string {
	var b strings.Builder
	b.WriteString("\n|facts|entries|rest on|compared with Linux|\n|---|---|---|---|\n")
	for _, k := range kinds() {
		entriesOf := ""
		switch k.table {
		case "":
		case "helpers.txt":
			entriesOf = fmt.Sprintf("%d helpers, %d types of programs", LastHelper, len(Callers()))
		case "programs.txt":
			entriesOf = fmt.Sprint(len(programTable()))
		case "kfuncs.txt":
			n := len(the().kfuncs)
			if k.name == "kfunc sets" {
				n = len(the().only)
			}
			entriesOf = fmt.Sprintf("%d kfuncs", n)
		case "contexts.txt":
			entriesOf = fmt.Sprintf("%d types of programs", len(contextTable().programs))
		case "hooks.txt":
			entriesOf = fmt.Sprintf("%d hooks", len(the().hooks))
		case "interface.txt":
			entriesOf = fmt.Sprint(len(the().came))
		default:
			entriesOf = the().basis(k.table)
		}
		var releases []string
		for _, r := range k.compared {
			releases = append(releases, r.String())
		}
		fmt.Fprintf(&b, "|%s|%s|%s|%s|\n", k.title, entriesOf, k.basis, strings.Join(releases, ", "))
	}
	b.WriteString("\n")
	return b.String()
}

// TestKindTable writes the table of kinds in docs/accuracy.md, or compares it.
func TestKindTable(t *testing.T) {
	path := testinput.Path(t, "docs", "accuracy.md")
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(page), tableBegin)
	_, after, ends := strings.Cut(rest, tableEnd)
	if !begins || !ends {
		t.Fatal("docs/accuracy.md has no place for the table")
	}
	want := before + tableBegin + kindTable() + tableEnd + after
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
	} else if string(page) != want {
		t.Error("docs/accuracy.md has another table; go test ./internal/check/facts -update writes it")
	}
}

// TestKindsRefused checks that a kind with a mistake is refused, and that each table has a kind.
func TestKindsRefused(t *testing.T) {
	for _, bad := range []string{"a\n", "a\n\tcompared with: 6\n", "a\n\tcompared with: 6.1 5.10\n", "a\n\tname: b\n", "\ta: b\n"} {
		if k, err := readKinds(bad); err == nil {
			t.Errorf("%q: %v", bad, k)
		}
	}
	files, err := files.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]bool{"kinds.txt": true}
	for _, k := range kinds() {
		of[k.table] = true
	}
	for _, f := range files {
		if !of[f.Name()] {
			t.Errorf("kinds.txt has no kind for %s", f.Name())
		}
	}
}
