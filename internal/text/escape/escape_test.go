// SPDX-License-Identifier: Apache-2.0

package escape

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"kprobe/tcp_v4_connect", "kprobe/tcp_v4_connect"},
		{`C:\dir → é 漢 “x” 🛡️`, `C:\dir → é 漢 “x” 🛡️`},
		{"a\nb\tc\r", `a\nb\tc\r`},
		{"\x1b[2J\x00\x7f", `\x1b[2J\x00\x7f`},
		{"\u009b2J\u00a0", `\u009b2J\u00a0`},       // the C1 form of escape [, and a space that is none
		{"\u202eo.gpj\u2066", `\u202eo.gpj\u2066`}, // reorder what follows
		{"\u200b\ufeff\u2028\U000e0041", `\u200b\ufeff\u2028\U000e0041`},
		{"a\xffb\xe2\x82", `a\xffb\xe2\x82`},
		{"\ufffd", "\ufffd"}, // a character like others
		{"::error::x", `\x3a:error::x`},
		{"  ::error::x", `  \x3a:error::x`},
		{"std::vector", "std::vector"},
		{"a ##[group]", `a #\x23[group]`},
		{"###[x", `##\x23[x`},
		{"##\x1b[", `##\x1b[`},
	} {
		got := Text(c.in)
		if got != c.want {
			t.Errorf("Text(%q) = %q, want %q", c.in, got, c.want)
		}
		if again := Text(got); again != got {
			t.Errorf("Text(%q) = %q, want it as it is", got, again)
		}
	}
}

type word string

func (w word) String() string { return "<" + string(w) + "\n>" }

func TestFprintf(t *testing.T) {
	esc := "\x1b"
	for _, c := range []struct {
		want string
		got  Own
	}{
		{"\t" + `a\nb` + "\n", Sprintf("\t%s\n", "a\nb")},
		{`a\x1b 7 2.5 true`, Sprintf("%s %d %.1f %v", "a\x1b", 7, 2.5, true)},
		{`   \x1b|\x1b   `, Sprintf("%7s|%-*s", esc, 7, esc)},
		{`"\x1b\n"`, Sprintf("%q", "\x1b\n")},
		{`not \x1b: <w\n> [a\n b]`, Sprintf("%s: %v %v", errors.New("not \x1b"), word("w"), []string{"a\n", "b"})},
		{"\x1b[31mred\x1b[0m", Sprintf("%s", Own("\x1b[31mred\x1b[0m"))},
		{`<nil>`, Sprintf("%v", nil)},
	} {
		if c.got != Own(c.want) {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
	var b bytes.Buffer
	if n, err := Fprintf(&b, "%s\n", "\r"); n != b.Len() || err != nil || b.String() != "\\r\n" {
		t.Errorf("%q, %d, %v", &b, n, err)
	}
}

func TestMarkdown(t *testing.T) {
	for _, c := range []struct{ in, want, code string }{
		{"tcp_v4", `tcp\_v4`, "`tcp_v4`"},
		{"a|b`c\n", "a\\|b\\`c\\\\n", "`a\\x7cb\\x60c\\n`"},
		{"![x](y)", `!\[x\](y)`, "`![x](y)`"},
		{"<script>&lt;", `&lt;script>&amp;lt;`, "`<script>&lt;`"},
		{"@you a@b (@all)", `\\x40you a@b (\\x40all)`, "`@you a@b (@all)`"},
		{"https://x.y www.x.y", `https\://x.y www\.x.y`, "`https://x.y www.x.y`"},
		{"# h", `\# h`, "`# h`"},
		{"- l", `\- l`, "`- l`"},
		{"~~x~~ $y$", `\~\~x\~\~ \$y\$`, "`~~x~~ $y$`"},
	} {
		if got := Markdown(c.in); got != c.want {
			t.Errorf("Markdown(%q) = %q, want %q", c.in, got, c.want)
		}
		if got := Code(c.in); got != c.code {
			t.Errorf("Code(%q) = %q, want %q", c.in, got, c.code)
		}
	}
}

// FuzzText checks properties of all escaped names.
func FuzzText(f *testing.F) {
	for _, s := range []string{"x", "a\nb", "\x1b[2J\u202e\xff", "::x", "##[x", "|`<@a>`", "\U000e0041\u2028\\"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		text := Text(s)
		if !plain(text) || Text(text) != text {
			t.Errorf("Text(%q) = %q", s, text)
		}
		if utf8.ValidString(s) && plain(s) != (text == s) {
			t.Errorf("plain(%q) = %v, and it is printed as %q", s, plain(s), text)
		}
		if got := string(Sprintf("%v", s)); got != text {
			t.Errorf("Sprintf(%q) = %q, Text %q", s, got, text)
		}
		if code := Code(s); strings.Count(code, "`") != 2 || strings.ContainsAny(code, "|\n") {
			t.Errorf("Code(%q) = %q", s, code)
		}
		var b bytes.Buffer
		if err := JSON(&b).Encode(s); err != nil {
			t.Fatal(err)
		}
		if line, ok := strings.CutSuffix(b.String(), "\n"); !ok || strings.ContainsFunc(line, func(r rune) bool { return Text(string(r)) != string(r) }) {
			t.Errorf("JSON of %q: %q", s, &b)
		}
		var back string
		if err := json.Unmarshal(b.Bytes(), &back); err != nil || back != strings.ToValidUTF8(s, "\ufffd") && utf8.ValidString(s) {
			t.Errorf("JSON of %q: %q, %v", s, back, err)
		}
	})
}
