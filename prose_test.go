// SPDX-License-Identifier: Apache-2.0

package btfgen_test

import (
	"bytes"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/slow"
)

// dialect matches phrases that usually make a reader start the sentence again.
// A match is not always wrong, so TestProse allows a few.
var dialect = regexp.MustCompile(`(?i)` + strings.Join([]string{
	`\b(is|are|was|were|be|been|being) told\b`, `\btold (from|by|of|apart|together|to)\b`,
	`\btells?\b`,
	`\bcomes? to\b`, `\bcame of\b`, `\bcomes? of\b`,
	`\bnobody\b`, `\bsomebody\b`, `\bnowhere\b`,
	`\bof which\b`, `\bis of\b`, `\bare of\b`,
	`\b(makes?|made) (anything|nothing|something|others?) of\b`, `\bmakes? of\b`,
	`\b(is|are) to (be|have|do|say|go|work|load|come)\b`,
	`\btakes? it that\b`,
	`\b(asks?|asked) (for|of|what|which|whether|by)\b`,
	`\bminds?\b`,
	`\bgoes by\b`, `\bgo by\b`,
	`\bas (they|it) (is|are|were|was|lie|lies)\b`,
	`\bso (many|much) \w+ that\b`,
	`\bone (that|which) (is|has|was)\b`,
	`\bwhat (is|are|was|were) (not )?(told|left|kept|there|read|made|meant|asked)\b`,
	`\b(is|are) (not )?there\b`,
	`\ball that\b`, `\bbut for\b`, `\bbesides\b`,
	`\bstands? (for|in|at|behind)\b`,
	`\bno more than\b`, `\bnothing but\b`, `\bthe like\b`,
}, "|"))

// dialectFree matches what dialect finds and should not: Go's regexp has no
// look-ahead.
var dialectFree = regexp.MustCompile(`(?i)\btells? (me|you|us|the user)\b|\bof which version\b|\b(asks?|asked) for permission\b|\b(is|are) there (a|an|any|no|is|are)\b`)

var (
	lineComment = regexp.MustCompile(`(?:^|\s)//\s?(.*)$`)
	literal     = regexp.MustCompile(`"((?:[^"\\]|\\.)*)"`)
)

// prose calls f with each line of a file that people read: comments, strings of
// at least four words, the text of Markdown files.
func prose(name, text string, f func(n int, line string)) {
	fenced := false
	for n, line := range slices.Collect(strings.SplitSeq(text, "\n")) {
		switch path.Ext(name) {
		case ".md":
			fence := strings.HasPrefix(line, "```")
			fenced = fenced != fence
			if !fenced && !fence && !strings.HasPrefix(line, "    ") {
				f(n+1, line)
			}
		case ".go", ".c", ".h":
			trimmed := strings.TrimSpace(line)
			if m := lineComment.FindStringSubmatch(line); m != nil {
				f(n+1, m[1])
			} else if strings.HasPrefix(trimmed, "* ") || strings.HasPrefix(trimmed, "/*") {
				f(n+1, trimmed)
			} else if !strings.HasSuffix(name, "_test.go") {
				for _, m := range literal.FindAllStringSubmatch(line, -1) {
					if strings.Count(m[1], " ") >= 3 {
						f(n+1, m[1])
					}
				}
			}
		case ".sh":
			if comment, ok := strings.CutPrefix(line, "# "); ok {
				f(n+1, comment)
			}
		}
	}
}

// fragment matches the start of a comment that goes on with the code before it,
// as in "b []byte // that are not read yet". Readers have to find out what "that" is.
var fragment = regexp.MustCompile(`^(that|which|whose|whom|(at|by|for|from|in|of|on|to|where|with) (which|whose))\b`)

// TestTrailingComments checks that comments behind code are not relative clauses.
func TestTrailingComments(t *testing.T) {
	list, err := exec.Command("git", "ls-files", "*.go").Output()
	if err != nil {
		t.Skip("not a git checkout:", err)
	}
	comments := 0
	for name := range strings.FieldsSeq(string(list)) {
		if strings.Contains("/"+name, "/testdata/") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			continue // deleted, and not committed yet
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, text, parser.ParseComments)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, group := range file.Comments {
			at := files.Position(group.Pos())
			if before := text[at.Offset-at.Column+1 : at.Offset]; len(bytes.TrimSpace(before)) == 0 {
				continue
			}
			comments++
			if fragment.MatchString(strings.TrimPrefix(group.List[0].Text, "// ")) {
				t.Errorf("%s: %s: want a phrase that is complete without the code", at, group.List[0].Text)
			}
		}
	}
	if comments < 1000 {
		t.Errorf("found %d comments only", comments)
	}
}

// TestProse checks that comments, messages and documentation are plain English:
// in each folder fewer than one match of dialect in 1,000 words.
func TestProse(t *testing.T) {
	slow.Skip(t)
	list, err := exec.Command("git", "ls-files").Output()
	if err != nil {
		t.Skip("not a git checkout:", err)
	}
	type count struct {
		words int
		hits  []string
	}
	folders := make(map[string]*count)
	for name := range strings.FieldsSeq(string(list)) {
		if strings.HasPrefix(name, "testdata/") || strings.Contains(name, "/testdata/") || name == "prose_test.go" {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			continue // deleted, and not committed yet
		}
		c := folders[path.Dir(name)]
		if c == nil {
			c = new(count)
			folders[path.Dir(name)] = c
		}
		prose(name, string(text), func(n int, line string) {
			c.words += len(strings.Fields(line))
			if m := dialect.FindString(dialectFree.ReplaceAllString(line, "")); m != "" {
				c.hits = append(c.hits, name+":"+strconv.Itoa(n)+": ["+m+"] "+strings.TrimSpace(line))
			}
		})
	}
	if len(folders) < 40 {
		t.Errorf("found text in %d folders only", len(folders))
	}
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		// A folder with little text may have one match.
		if c := folders[folder]; len(c.hits) > 1 && 1000*len(c.hits) >= c.words {
			t.Errorf("%s: %d matches in %d words\n\t%s", folder, len(c.hits), c.words, strings.Join(c.hits, "\n\t"))
		}
	}
}
