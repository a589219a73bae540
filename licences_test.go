package btfgen_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// copyrightFile is packaging/copyright, in Debian's machine-readable format.
type copyrightFile struct {
	files    []filesParagraph
	licences []string // that have their text in a paragraph of their own
}

type filesParagraph struct {
	patterns           []string
	copyright, licence string
}

// covers says which paragraph is about a file: the last one that matches, as * matches slashes too.
func (c *copyrightFile) covers(t *testing.T, file string) *filesParagraph {
	t.Helper()
	for i := len(c.files) - 1; i >= 0; i-- {
		for _, p := range c.files[i].patterns {
			x := "^" + strings.ReplaceAll(regexp.QuoteMeta(p), `\*`, ".*") + "$"
			if regexp.MustCompile(x).MatchString(file) {
				return &c.files[i]
			}
		}
	}
	t.Fatalf("nothing about %s", file)
	return nil
}

func readCopyright(t *testing.T) *copyrightFile {
	t.Helper()
	data, err := os.ReadFile("packaging/copyright")
	if err != nil {
		t.Fatal(err)
	}
	c := new(copyrightFile)
	for _, text := range strings.Split(string(data), "\n\n") {
		fields, name := map[string]string{}, ""
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, " ") {
				fields[name] += line
				continue
			}
			var value string
			name, value, _ = strings.Cut(line, ":")
			fields[name] = strings.TrimSpace(value) + "\n"
		}
		short, body, _ := strings.Cut(strings.TrimSpace(fields["License"]), "\n")
		if p, ok := fields["Files"]; ok {
			c.files = append(c.files, filesParagraph{strings.Fields(p), fields["Copyright"], short})
			if body != "" {
				c.licences = append(c.licences, short)
			}
		} else if short != "" {
			c.licences = append(c.licences, short)
		}
	}
	if len(c.files) < 5 || c.files[0].patterns[0] != "*" {
		t.Fatalf("%d paragraphs about files", len(c.files))
	}
	return c
}

// TestCopyright holds that each licence in packaging/copyright has its text, and that its patterns are about files that there are.
func TestCopyright(t *testing.T) {
	c := readCopyright(t)
	for _, p := range c.files {
		for _, name := range regexp.MustCompile(` (?:and|or) `).Split(p.licence, -1) {
			if !slices.Contains(c.licences, name) {
				t.Errorf("%v: no text of the licence %s", p.patterns, name)
			}
		}
	}
	for _, p := range c.files {
		for _, pattern := range p.patterns {
			if m, err := filepath.Glob(pattern); err != nil || len(m) == 0 {
				t.Errorf("%s: no such file", pattern)
			}
		}
	}
}

var identifier = regexp.MustCompile(`SPDX-License-Identifier: ([^\r\n*]+)`)

// TestSPDX holds the identifiers in files to packaging/copyright.
func TestSPDX(t *testing.T) {
	c := readCopyright(t)
	seen := 0
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == ".git" || d.Name() == "out" || d.Name() == "dist") {
			return errOrSkip(err)
		}
		if !d.Type().IsRegular() || !slices.Contains([]string{".go", ".c", ".h", ".sh", ".py", ".yml", ".3", ""}, filepath.Ext(file)) {
			return nil
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		m := identifier.FindSubmatch(data[:min(len(data), 512)])
		if m == nil {
			return nil
		}
		seen++
		got := strings.ReplaceAll(strings.TrimSpace(string(m[1])), " OR ", " or ")
		if want := c.covers(t, filepath.ToSlash(file)).licence; got != want {
			t.Errorf("%s says %s, packaging/copyright %s", file, got, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 30 {
		t.Errorf("only %d files say under which licence they are", seen)
	}
}

func errOrSkip(err error) error {
	if err != nil {
		return err
	}
	return fs.SkipDir
}
