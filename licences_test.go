// SPDX-License-Identifier: Apache-2.0

package btfgen_test

import (
	"bytes"
	"cmp"
	"flag"
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
	licences []string // their text is in a paragraph of their own
}

type filesParagraph struct {
	patterns []string
	licence  string
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
			c.files = append(c.files, filesParagraph{strings.Fields(p), short})
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
		for _, pattern := range p.patterns {
			if m, err := filepath.Glob(pattern); err != nil || len(m) == 0 {
				t.Errorf("%s: no such file", pattern)
			}
		}
	}
}

var (
	update     = flag.Bool("update", false, "put the missing licence identifiers into files")
	identifier = regexp.MustCompile(`SPDX-License-Identifier: ([^\r\n*]+)`)
)

// TestSPDX holds that every source says under which licence it is, and says what packaging/copyright does. Run it with -update
// to have it said where it is not.
func TestSPDX(t *testing.T) {
	c := readCopyright(t)
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{".git", "out", "dist", "vendor"}, d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		mark := comments[cmp.Or(filepath.Ext(file), d.Name())]
		if mark == "" || !d.Type().IsRegular() {
			return nil
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		want := strings.ReplaceAll(c.covers(t, filepath.ToSlash(file)).licence, " or ", " OR ")
		m := identifier.FindSubmatch(data[:min(len(data), 512)])
		switch {
		case m == nil && *update:
			return os.WriteFile(file, identified(data, mark, want), 0o666)
		case m == nil:
			t.Errorf("%s does not say under which licence it is, run: go test . -run TestSPDX -update", file)
		case strings.TrimSpace(string(m[1])) != want:
			t.Errorf("%s says %s, packaging/copyright %s", file, m[1], want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// comments are what begins a comment in files that say under which licence they are, by the end of their names.
var comments = map[string]string{
	".go": "//", ".c": "//", ".h": "//", ".sh": "#", ".py": "#", ".yml": "#", "Makefile": "#", "Dockerfile": "#",
}

// identified returns a source that says under which licence it is.
func identified(source []byte, mark, licence string) []byte {
	first, rest := []byte(nil), source
	if bytes.HasPrefix(source, []byte("#!")) {
		n := bytes.IndexByte(source, '\n') + 1
		first, rest = source[:n], source[n:]
	}
	line := mark + " SPDX-License-Identifier: " + licence + "\n"
	if mark == "//" {
		line += "\n" // or it would belong to what is documented next
	}
	return slices.Concat(first, []byte(line), rest)
}
