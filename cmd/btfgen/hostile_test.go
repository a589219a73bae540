// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"

	"github.com/btfgen/btfgen/internal/testing/slow"
)

// forged is the text that hostile names try to print on a line of its own.
const forged = "btfgen: forged"

// hostileNames replaces names in an object and in kernels by names of the same length, so that offsets stay valid.
var hostileNames = strings.NewReplacer(
	"inet_sock_set_state", "\n"+forged+"\x1b[2J", // section, program and type
	"skc_rcv_saddr", "\r::error::\u202e", // member
	"bytes_received", "|`<script>\xff]]>", // member
	"tcp_v4_connect", "[x](y)`\u009b\t\x7f||!", // section and program
)

// hostileDir is a directory of files with hostile names and contents: an object, a file that is not an object,
// and a corpus with two kernels, a damaged file, modules without a kernel and a dangling link.
type hostileDir struct {
	dir, object, noObject, corpus, osRelease string
	keys                                     []string // keys of the kernels
}

func newHostileDir(t *testing.T) *hostileDir {
	t.Helper()
	h := &hostileDir{dir: t.TempDir()}
	write := func(name string, data []byte) string {
		t.Helper()
		name = filepath.Join(h.dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, data, 0o666); err != nil {
			t.Fatal(err)
		}
		return name
	}
	read := func(name string) []byte {
		t.Helper()
		data, err := os.ReadFile(filepath.Join("../../testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	unpack := func(name string) []byte {
		t.Helper()
		r, err := zstd.NewReader(bytes.NewReader(read(name)))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	hostile := func(data []byte) []byte {
		t.Helper()
		out := []byte(hostileNames.Replace(string(data)))
		if len(out) != len(data) || bytes.Equal(out, data) {
			t.Fatalf("%d bytes of %d, want others", len(out), len(data))
		}
		return out
	}
	h.object = write("o|`\u202e\n"+forged+"\x1b[2J.o", hostile(read("bpf/tcplife.bpfel.o")))
	h.noObject = write("n\n"+forged+"\x1b[2J.o", []byte("no object"))
	h.corpus = filepath.Join(h.dir, "c\n"+forged+"\x1b[2J")
	tree := filepath.Base(h.corpus)
	h.keys = []string{
		"debian/\n" + forged + "\x1b[2J/x86_64/6.1.0-47-amd64",
		"debian/11/x86_64/5.10.0|`<b>\u202e\u009b\xff",
	}
	newer := unpack("vmlinux/debian/12/x86_64/6.1.0-47-amd64.btf.zst")
	write(tree+"/"+h.keys[0]+".btf", hostile(newer))
	write(tree+"/"+h.keys[1]+".btf", unpack("vmlinux/debian/11/x86_64/5.10.0-30-amd64.btf.zst"))
	write(tree+"/debian/12/x86_64/\n"+forged+"\x1b.btf", newer[:len(newer)/2])
	write(tree+"/no\n"+forged+"\x1b/6.1.btf", hostile(newer))
	write(tree+"/modules/debian/9/x86_64/\n"+forged+".modules.tar", nil)
	if err := os.Symlink("\n"+forged+"\x1b[2J", filepath.Join(h.corpus, "link\n"+forged+".btf")); err != nil {
		t.Fatal(err)
	}
	h.osRelease = write("os-release", []byte("ID=debian\nVERSION_ID=\"::error::forged\u202e\u009b|\"\n"))
	return h
}

// own removes the unprintable characters that btfgen itself prints. The icons in Markdown end in one.
var own = strings.NewReplacer("\n", "", "\ufe0f", "")

// printed fails if a text has control characters or forged lines.
func printed(t *testing.T, what, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Errorf("%s: not UTF-8:\n%q", what, text)
	}
	for _, r := range own.Replace(text) {
		if !strconv.IsPrint(r) {
			t.Errorf("%s: %U is printed as it is:\n%q", what, r, text)
			break
		}
	}
	for _, line := range strings.Split(text, "\n") {
		switch line := strings.TrimSpace(line); {
		case strings.HasPrefix(line, forged), strings.HasPrefix(line, "::"), strings.Contains(line, "##["):
			t.Errorf("%s: a name made a line of its own: %q", what, line)
		}
	}
}

// No output of any command lets a hostile name of a file, kernel, object, program, type or member affect the text around it.
func TestHostileNames(t *testing.T) {
	slow.Skip(t)
	h := newHostileDir(t)
	t.Chdir(h.dir)
	other := "a\n" + forged + "\x1b[2J"
	btf := "--btf=" + filepath.Base(h.corpus)
	sound := btf + "/debian/11" // generate can write an archive from these
	object, noObject := filepath.Base(h.object), filepath.Base(h.noObject)
	kernel := filepath.Join(filepath.Base(h.corpus), h.keys[0]+".btf")
	outputs := make(map[string]string)
	for _, args := range [][]string{
		{"generate", sound, "-o", other + ".btfa", "--manifest", other + ".json", "--verbose", object, noObject},
		{"generate", sound, "-o", other + ".btfa", "--reuse", other + ".btfa", "--keep=struct:task_struct", object},
		{"generate", btf, "-o", other + ".tar.gz", "--json", object},
		{"generate", btf, "-o", other + ".tree/", object},
		{"generate", btf, "-o", other + ".zip", object},
		{"generate", "--btf", other, "-o", other + ".btfa", object},
		{"generate", sound, "-o", other + ".btfa", noObject},
		{"generate", sound, "-o", object + "/x.btfa", object},
		{"min_core_btf", kernel, other + ".btf", object, noObject},
		{"min_core_btf", kernel, kernel, object},
		{"min_core_btf", other, other + ".btf", object},
		{"relolog", "--btf", kernel, "--verbose", object, noObject},
		{"relolog", btf, object},
		{"relolog", btf, "--verbose", object},
		{"relolog", btf, "--json", object},
		{"verify", btf, "--verbose", other + ".btfa", object, noObject},
		{"verify", sound, "--json", other + ".btfa", object, noObject},
		{"verify", btf, "--json", other + ".tree", object},
		{"verify", btf, "--verbose", other + ".json", object},
		{"check", btf, object, noObject},
		{"check", btf, "--verbose", object},
		{"check", btf, "--format=markdown", object},
		{"check", btf, "--format=markdown", "--verbose", "-o", other + ".md", object},
		{"check", btf, "--format=junit", object},
		{"check", btf, "--format=sarif", object},
		{"check", btf, "--format=html", object},
		{"check", btf, "--json", "-o", other + ".check", object},
		{"check", btf, "--baseline", other + ".json", object},
		{"check", btf, "--require", other, object},
		{"corpus", "list", filepath.Base(h.corpus)},
		{"corpus", "list", "--long", filepath.Base(h.corpus)},
		{"corpus", "list", "--json", filepath.Base(h.corpus)},
		{"corpus", "lint", filepath.Base(h.corpus)},
		{"corpus", "lint", "--json", filepath.Base(h.corpus)},
		{"corpus", "import", filepath.Base(h.corpus), "-o", other + ".btfc"},
		{"corpus", "import", filepath.Base(h.corpus), "--json", "-o", other + ".btfc"},
		{"corpus", "import", filepath.Base(h.corpus), "--as", other, "-o", other + ".btfc"},
		{"corpus", "extract", filepath.Base(h.corpus), "-o", other + ".extract/"},
		{"corpus", "extract", kernel, "-o", object + "/x"},
		{"archive", "list", other + ".btfa"},
		{"archive", "list", "--json", other + ".btfa"},
		{"archive", "list", other + ".json"},
		{"archive", "lookup", "--os-release", "os-release", "--release", other, other + ".btfa"},
		{"archive", "lookup", "--os-release", "os-release", "--release", "6.1.0-47-amd64", "--arch=x86_64", other + ".btfa"},
		{"archive", "lookup", "--os-release", "os-release", "--release", other, "--json", other + ".btfa"},
		{"archive", "convert", other + ".btfa", "--select", other, "-o", other + ".extracted"},
		{"archive", "convert", other + ".btfa", other + ".tree", "-o", other + ".merged.btfa"},
		{"archive", "convert", other + ".btfa", "-o", other + ".tar.xz"},
		{"archive", "convert", other + ".json", "-o", other + ".tar.xz"},
		{"archive", other},
		{"corpus", other},
		{other},
		{"--" + other},
		{"help", other},
		{"help", "corpus", "lint", other},
		{"generate", "--" + other},
		{"generate", "--jobs=" + other, object},
	} {
		var stdout, stderr bytes.Buffer
		run(t.Context(), args, &stdout, &stderr)
		line := strings.Join(args, " ")
		printed(t, "standard output of "+line, stdout.String())
		printed(t, "standard error of "+line, stderr.String())
		if !strings.Contains(stdout.String()+stderr.String(), "forged") && !strings.Contains(line, ".md") {
			t.Errorf("%q: names nothing:\n%s\n%s", line, &stdout, &stderr)
		}
		key := strings.Join(args[:1], " ")
		for _, a := range args[1:] {
			if strings.HasPrefix(a, "--format=") || a == "--json" || a == "--baseline" {
				key += " " + a
			}
		}
		outputs[key] += stdout.String()
	}
	for _, name := range []string{".json", ".md", ".check"} {
		data, err := os.ReadFile(other + name)
		if err != nil {
			t.Fatal(err)
		}
		printed(t, name, string(data))
		outputs[name] = string(data)
	}
	t.Run("markdown", func(t *testing.T) {
		hostileMarkdown(t, outputs["check --format=markdown"])
		hostileMarkdown(t, outputs[".md"])
	})
	t.Run("json", func(t *testing.T) {
		for _, key := range []string{"generate --json", "relolog --json", "verify --json", "corpus --json", "archive --json", "check --format=sarif", ".json", ".check"} {
			hostileJSON(t, key, outputs[key])
		}
	})
	t.Run("junit", func(t *testing.T) {
		d := xml.NewDecoder(strings.NewReader(outputs["check --format=junit"]))
		elements := 0
		for {
			tok, err := d.Token()
			if err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if _, ok := tok.(xml.StartElement); ok {
				elements++
			}
			for _, r := range "\ufffd" {
				if text, ok := tok.(xml.CharData); ok && bytes.ContainsRune(text, r) {
					t.Errorf("a character is lost: %q", text)
				}
			}
		}
		if elements < 5 {
			t.Errorf("%d elements", elements)
		}
	})
	t.Run("html", func(t *testing.T) {
		if n := strings.Count(outputs["check --format=html"], "<script"); n != 1 {
			t.Errorf("%d scripts, want 1", n)
		}
	})
}

// inert matches a code span or an escaped character.
var inert = regexp.MustCompile("`[^`]*`|\\\\.")

// meaning matches characters that are markup elsewhere.
var meaning = regexp.MustCompile("[`\\[\\]<*~$_]")

func hostileMarkdown(t *testing.T, text string) {
	t.Helper()
	columns, rows := 0, 0
	for _, line := range strings.Split(text, "\n") {
		line = inert.ReplaceAllStringFunc(line, func(text string) string {
			if text[0] == '`' && strings.Contains(text, "|") {
				t.Errorf("a code span ends its cell: %s", text)
			}
			return ""
		})
		if m := meaning.FindString(line); m != "" {
			t.Errorf("%q is markup: %s", m, line)
		}
		if !strings.HasPrefix(line, "|") {
			columns = 0
			continue
		}
		n := strings.Count(line, "|")
		if rows++; columns == 0 {
			columns = n
		}
		if n != columns {
			t.Errorf("%d columns, want %d: %s", n, columns, line)
		}
	}
	if rows == 0 {
		t.Errorf("no table:\n%s", text)
	}
}

func hostileJSON(t *testing.T, what, text string) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	values := 0
	for {
		var v any
		if err := d.Decode(&v); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		values++
	}
	if values == 0 {
		t.Errorf("%s: nothing", what)
	}
}
