// SPDX-License-Identifier: Apache-2.0

package btfgen_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pages returns the text of every page of the repository by its path, without blocks of code.
func pages(t *testing.T) map[string]string {
	t.Helper()
	code := regexp.MustCompile("(?ms)^```.*?^```$|^    .*?$")
	texts := make(map[string]string)
	for _, pattern := range []string{"*.md", "docs/*.md", "examples/*.md", "testdata/*/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d pages (%v)", pattern, len(files), err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			texts[filepath.ToSlash(f)] = code.ReplaceAllString(string(text), "")
		}
	}
	return texts
}

// anchors returns the anchors that GitHub generates for the headings of a page.
func anchors(text string) (list []string) {
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		a := strings.ToLower(strings.TrimSpace(m[1]))
		list = append(list, strings.ReplaceAll(regexp.MustCompile(`[^\pL\pN _-]`).ReplaceAllString(a, ""), " ", "-"))
	}
	return list
}

// TestLinks checks that every link within the repository leads to a file and to one of its headings.
func TestLinks(t *testing.T) {
	texts, links := pages(t), 0
	for page, text := range texts {
		for _, m := range regexp.MustCompile(`\]\(([^)\s]*)\)`).FindAllStringSubmatch(text, -1) {
			path, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(path, ":") {
				continue
			}
			links++
			to := page
			if path != "" {
				to = filepath.ToSlash(filepath.Join(filepath.Dir(page), path))
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: %s: %v", page, m[1], err)
			} else if anchor != "" && !slices.Contains(anchors(texts[to]), anchor) {
				t.Errorf("%s: %s has no heading #%s", page, to, anchor)
			}
		}
	}
	if links < 50 {
		t.Errorf("%d links", links)
	}
}

// TestOptions checks that every option of btfgen that a page names exists. docs/cli.md is generated from the commands.
func TestOptions(t *testing.T) {
	texts, option, options := pages(t), regexp.MustCompile(`(?:^|[\s(])(--[a-z][a-z-]+)`), 0
	others := []string{"--version", "--debug", // of btfgen itself; the rest are options of other programs
		"--long", "--modversion", "--only", "--quick", "--self-test", "--strip-components", "--ultra"}
	exists := func(option string) bool {
		return regexp.MustCompile("(?m)^- `(-[A-Za-z], )?" + option + "[ `]").MatchString(texts["docs/cli.md"])
	}
	for page, text := range texts {
		for i, code := range strings.Split(text, "`") {
			if i%2 == 0 {
				continue
			}
			for _, m := range option.FindAllStringSubmatch(code, -1) {
				options++
				if !exists(m[1]) && !slices.Contains(others, m[1]) {
					t.Errorf("%s: %s: no such option", page, m[1])
				}
			}
		}
	}
	if options < 50 {
		t.Errorf("%d options", options)
	}
}

// TestIndex checks that docs/README.md lists every page of docs.
func TestIndex(t *testing.T) {
	texts := pages(t)
	for page := range texts {
		name, ok := strings.CutPrefix(page, "docs/")
		if ok && name != "README.md" && !strings.Contains(texts["docs/README.md"], "]("+name+")") {
			t.Errorf("docs/README.md does not list %s", name)
		}
	}
}

// TestRoomsPage checks that docs/architecture.md lists every room of internal and pkg in its place, the top first, with
// the imports that it is limited to.
func TestRoomsPage(t *testing.T) {
	at := make(map[string]int)
	rows := regexp.MustCompile("(?m)^\\| (`.*) \\| (.*) \\| (.*) \\| (.*) \\|$").FindAllStringSubmatch(pages(t)["docs/architecture.md"], -1)
	for i, row := range rows {
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			at[name[1]] = len(rows) - i
			for _, to := range only[name[1]] {
				if short := strings.TrimPrefix(to, "internal/"); !strings.Contains(row[3], short) && room(t, to) != room(t, name[1]) &&
					!strings.Contains(row[3], strings.TrimPrefix(room(t, to), "internal/")) {
					t.Errorf("%s may import %s, and docs/architecture.md says %s", name[1], short, row[3])
				}
			}
		}
	}
	last := 0
	for _, name := range rooms {
		if at[name] == 0 && !strings.Contains(name, "/") && name != "cmd/btfgen" {
			continue // scripts, examples
		}
		if at[name] == 0 || at[name] < last {
			t.Errorf("docs/architecture.md does not have %s in its place", name)
		}
		last = at[name]
	}
}
