// SPDX-License-Identifier: Apache-2.0

package btfgen_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/slow"
)

// withoutCode removes blocks of code.
func withoutCode(text string) string {
	return regexp.MustCompile("(?ms)^```.*?^```$|^    .*?$").ReplaceAllString(text, "")
}

// pagesIn returns the text of files by their paths.
func pagesIn(t *testing.T, patterns ...string) map[string]string {
	t.Helper()
	texts := make(map[string]string)
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files (%v)", pattern, len(files), err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			texts[filepath.ToSlash(f)] = string(text)
		}
	}
	return texts
}

// everyPage are the patterns of all pages of the repository.
var everyPage = []string{"*.md", "docs/*.md", "examples/*.md", "testdata/*/*.md"}

// pages returns the text of every page of the repository by its path, without blocks of code.
func pages(t *testing.T) map[string]string {
	t.Helper()
	texts := pagesIn(t, everyPage...)
	for name, text := range texts {
		texts[name] = withoutCode(text)
	}
	return texts
}

// anchor matches an anchor that is not a heading.
var anchor = regexp.MustCompile(`<a id="([a-z0-9-]+)"></a>`)

// anchors returns the anchors of a page, with those that GitHub generates for headings.
func anchors(text string) (list []string) {
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		a := strings.ToLower(strings.TrimSpace(m[1]))
		list = append(list, strings.ReplaceAll(regexp.MustCompile(`[^\pL\pN _-]`).ReplaceAllString(a, ""), " ", "-"))
	}
	for _, m := range anchor.FindAllStringSubmatch(text, -1) {
		list = append(list, m[1])
	}
	return list
}

// home is where links of installed documents lead that are not installed.
const home = "https://github.com/btfgen/btfgen/blob/main/"

// deadLinks returns the links of pages in a folder that lead to no file, or not to one of its anchors, and how many links within the
// folder and to home there are.
func deadLinks(texts map[string]string, folder string) (dead []string, links, homes int) {
	for _, page := range slices.Sorted(maps.Keys(texts)) {
		for _, m := range regexp.MustCompile(`\]\(([^)\s]*)\)`).FindAllStringSubmatch(texts[page], -1) {
			path, anchor, _ := strings.Cut(m[1], "#")
			if path, ok := strings.CutPrefix(path, home); ok {
				homes++
				if _, err := os.Stat(path); err != nil {
					dead = append(dead, page+": "+m[1])
				}
				continue
			}
			if strings.Contains(path, ":") {
				continue
			}
			links++
			to := page
			if path != "" {
				to = filepath.ToSlash(filepath.Join(filepath.Dir(page), path))
			}
			if _, err := os.Stat(filepath.Join(folder, to)); err != nil || anchor != "" && !slices.Contains(anchors(texts[to]), anchor) {
				dead = append(dead, page+": "+m[1])
			}
		}
	}
	return dead, links, homes
}

// TestLinks checks that every link within the repository leads to a file and to one of its anchors.
func TestLinks(t *testing.T) {
	dead, links, _ := deadLinks(pages(t), ".")
	if len(dead) > 0 || links < 50 {
		t.Errorf("%d links, which are dead: %q", links, dead)
	}
	bad := map[string]string{"docs/README.md": "[a](none.md) [b](README.md#none) [c](" + home + "none) # d\n[e](#d)", "docs/x.md": "[f](README.md)\n# d"}
	if dead, links, homes := deadLinks(bad, "."); len(dead) != 4 || links != 4 || homes != 1 {
		t.Errorf("finds only %q", dead) // #d is no heading, because it does not begin a line
	}
}

// TestInstalledLinks checks the links of the documents that packages install.
func TestInstalledLinks(t *testing.T) {
	slow.Skip(t)
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("needs bash")
	}
	dir := t.TempDir()
	if out, err := exec.Command("bash", "scripts/documents.sh", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	texts := make(map[string]string)
	files, err := filepath.Glob(filepath.Join(dir, "*.md"))
	if err != nil || len(files) != len(pagesIn(t, "docs/*.md"))+2 { // README.md and CHANGELOG.md
		t.Errorf("%d pages (%v)", len(files), err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(f)] = withoutCode(string(text))
	}
	dead, links, homes := deadLinks(texts, dir)
	if len(dead) > 0 || links < 50 || homes < 5 {
		t.Errorf("%d links, and %d to %s, which are dead: %q", links, homes, home, dead)
	}
}

// vocabulary is the names that docs/cli.md and docs/findings.md have, which are made from the program.
type vocabulary struct{ commands, options, codes map[string]bool }

func readVocabulary(t *testing.T) vocabulary {
	t.Helper()
	set := func(file, pattern string) map[string]bool {
		all := make(map[string]bool)
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(pagesIn(t, file)[file], -1) {
			all[m[1]] = true
		}
		if len(all) < 15 {
			t.Fatalf("%s: %d names", file, len(all))
		}
		return all
	}
	v := vocabulary{
		set("docs/cli.md", `(?m)^##+ btfgen (.*)$`), set("docs/cli.md", "(?m)^- `(?:-[A-Za-z], )?(--[a-z-]+)[ `]"), set("docs/findings.md", anchor.String()),
	}
	for _, name := range []string{"help", "help archive", "help corpus"} {
		v.commands[name] = true
	}
	v.options["--version"], v.options["--debug"], v.options["--help"] = true, true, true
	return v
}

// ofOthers are the options of other programs, and the names with hyphens, that spans of code in pages have.
var (
	optionsOfOthers = strings.Fields("--long --modversion --only --quick --scale --self-test --strip-components --ultra")
	namesOfOthers   = strings.Fields("inspektor-gadget fail-on min-kernel plain-http " + // options in a configuration file
		"apt-cache apt-get btfgen-registry debian-archive-keyring dpkg-deb ebpf-go go-cmp go-internal libbpf-dev libbpf-tools libbtfa-dev libelf-dev librust-zstd-dev libzstd-dev linux-tools-common llvm-objdump opensuse-leap os-release " +
		"pkg-config ubuntu-keyring xdp-bench xdp-tools")
)

// unknown returns the names in a file that do not exist: commands and options of btfgen on lines of code, which are all lines of a file
// that is no page except comments; and, in spans of code of a page, also options and codes of findings alone.
func (v vocabulary) unknown(name, text string) (bad []string, known int) {
	check := func(ok bool, what string) {
		if known++; !ok {
			bad = append(bad, name+": "+what)
		}
	}
	line := regexp.MustCompile(`(?:^|[\s|&;('"$])btfgen ((?:-\S+ )*)([a-z][a-z_]*)(?: ([a-z]+))?(.*)$`)
	option := regexp.MustCompile(`(?:^|[\s(\["'])(--[a-z][a-z-]+)`)
	code := func(s string) {
		for _, s := range regexp.MustCompile(` (?:&&|\|\||[|;]) `).Split(s, -1) {
			m := line.FindStringSubmatch(s)
			if m == nil {
				continue
			}
			command := m[2]
			if m[2] == "archive" || m[2] == "corpus" || m[2] == "help" && m[3] != "" && !v.commands[m[3]] {
				command += " " + m[3]
			}
			check(v.commands[strings.TrimSpace(command)], "btfgen "+command)
			for _, o := range option.FindAllStringSubmatch(m[1]+" "+m[4], -1) {
				check(v.options[o[1]] || slices.Contains(optionsOfOthers, o[1]), o[1])
			}
		}
	}
	if !strings.HasSuffix(name, ".md") {
		for l := range strings.Lines(text) {
			if l = strings.TrimSpace(l); !strings.HasPrefix(l, "#") && !strings.HasPrefix(l, "//") && !strings.HasPrefix(l, "description:") {
				code(l)
			}
		}
		return bad, known
	}
	for _, block := range regexp.MustCompile("(?ms)^```.*?^```$|^    .*?$").FindAllString(text, -1) {
		for l := range strings.Lines(block) {
			if l = strings.TrimPrefix(strings.TrimSpace(l), "$ "); strings.HasPrefix(l, "btfgen ") {
				code(l)
			}
		}
	}
	for i, span := range strings.Split(withoutCode(text), "`") {
		if i%2 == 0 {
			continue
		}
		code(span)
		for _, o := range option.FindAllStringSubmatch(span, -1) {
			check(v.options[o[1]] || slices.Contains(optionsOfOthers, o[1]), o[1])
		}
		if name == "docs/cli.md" { // it also has the codes of corpus lint
			continue
		}
		for _, word := range strings.Fields(span) {
			if regexp.MustCompile(`^[a-z]+(-[a-z]+)+$`).MatchString(word) {
				check(v.codes[word] || slices.Contains(namesOfOthers, word), word)
			}
		}
		// The changelog names commands, and subcommands after their group, without btfgen.
		if word, _, _ := strings.Cut(span, " --"); name == "CHANGELOG.md" && regexp.MustCompile(`^[a-z_]+( [a-z]+)?$`).MatchString(word) && word != "go test" {
			check(v.commands[word] || v.commands["archive "+word], word)
		}
	}
	return bad, known
}

// TestNames checks that every command, option and code of a finding exists that a page, an example or the action names.
func TestNames(t *testing.T) {
	v := readVocabulary(t)
	patterns := append(slices.Clone(everyPage), "action.yml", "Dockerfile", "examples/*/*.yml", "examples/*/*.yaml", "examples/*/*.go", "examples/*/Makefile", "examples/pipelines/systemd/*")
	total := 0
	for name, text := range pagesIn(t, patterns...) {
		bad, known := v.unknown(name, text)
		total += known
		for _, b := range bad {
			t.Errorf("%s: no such name", b)
		}
	}
	if total < 300 {
		t.Errorf("%d names", total)
	}
	for _, bad := range []struct{ name, text string }{
		{"x.md", "`btfgen man`"}, {"x.md", "    btfgen archive compare a b"}, {"x.md", "```\n$ btfgen check --no-such x.o\n```"}, {"x.md", "`--no-such`"},
		{"x.md", "`no-such-code`"}, {"CHANGELOG.md", "- read manual pages (`man`)"}, {"CHANGELOG.md", "(`archive compare`)"},
		{"action.yml", "run: btfgen chek x.o"}, {"x.yml", "  - ls && btfgen check --btfs kernels x.o"},
	} {
		if found, _ := v.unknown(bad.name, bad.text); len(found) != 1 {
			t.Errorf("%s: %q: found %q", bad.name, bad.text, found)
		}
	}
}

// TestReadmeCommands wants the two commands with which a clone is set up: the main job, and the tests.
func TestReadmeCommands(t *testing.T) {
	for _, command := range []string{"    go run ./cmd/btfgen generate --btf testdata/vmlinux ", "`go test ./...` runs the tests"} {
		if !strings.Contains(pagesIn(t, "README.md")["README.md"], command) {
			t.Errorf("README.md does not have %q", command)
		}
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
