// SPDX-License-Identifier: Apache-2.0

// Package escape prints text from outside safely: names of files, kernels, objects, programs, types and members, and errors, which
// contain them. Such text must not control the terminal or the log, or pretend to be btfgen's own.
//
// Printable text does not change. Other characters are printed as Go's escapes: "a\nb\x1b[2J" becomes a\nb\x1b[2J, on one line.
// Escaped text does not change again, so it can be composed first and printed later. Escapes are for reading and cannot be
// reversed: a backslash stays a backslash. Only JSON preserves names.
//
// All output for people goes through [Fprintf], Markdown through [Markdown] and [Code], JSON through [JSON]. Functions are safe for
// concurrent use.
package escape

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Text escapes s for terminals and logs, on one line. It escapes control characters, Unicode characters that hide or reorder text,
// bytes that are not UTF-8, and commands of code hosts in logs: "::" at the start of a line, and "##[".
func Text(s string) string {
	if plain(s) {
		return s
	}
	var b strings.Builder
	if head := strings.TrimLeft(s, " "); strings.HasPrefix(head, "::") {
		b.WriteString(s[:len(s)-len(head)] + `\x3a`)
		s = head[1:]
	}
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !strconv.IsPrint(r):
			q := strconv.QuoteRune(r)
			b.WriteString(q[1 : len(q)-1])
		case strings.HasPrefix(s[i:], "##["):
			b.WriteString(`#\x23`)
			n = 2
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// plain reports whether Text would return s.
func plain(s string) bool {
	for _, r := range s {
		if !strconv.IsPrint(r) {
			return false
		}
	}
	return utf8.ValidString(s) && !strings.Contains(s, "##[") && !strings.HasPrefix(strings.TrimLeft(s, " "), "::")
}

// Own is trusted text with control characters, such as colours. [Fprintf] does not escape it.
type Own string

// Fprintf is fmt.Fprintf for people. It escapes all arguments with [Text] except numbers and Own; %q only quotes them.
func Fprintf(w io.Writer, format string, args ...any) (int, error) {
	escape(args)
	return fmt.Fprintf(w, format, args...)
}

// Sprintf is Fprintf to a string, which Fprintf does not escape again.
func Sprintf(format string, args ...any) Own {
	escape(args)
	return Own(fmt.Sprintf(format, args...))
}

// escape replaces the arguments that Text changes. It does that in place, so that vet recognizes the functions above.
func escape(args []any) {
	for i, a := range args {
		switch a := a.(type) {
		case nil, bool, int, int32, int64, uint8, uint16, uint32, uint64, float64, Own:
		case string:
			if !plain(a) {
				args[i] = name{a}
			}
		default:
			if s := fmt.Sprint(a); !plain(s) {
				args[i] = name{s}
			}
		}
	}
}

// name is such an argument.
type name struct{ text string }

// Format prints the escaped text, with the width of the escaped form.
func (n name) Format(s fmt.State, verb rune) {
	text := n.text
	if verb != 'q' {
		text, verb = Text(text), 's'
	}
	fmt.Fprintf(s, fmt.FormatString(s, verb), text)
}

// Markdown escapes s as text of a Markdown document, also for a table or a list: it has no markup, link or mention.
func Markdown(s string) string {
	s = markup.Replace(mentions(Text(s)))
	if s != "" && strings.Contains("#>+=-", s[:1]) { // a heading, a list or a quote
		return `\` + s
	}
	return s
}

var markup = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "|", `\|`, "~", `\~`, "$", `\$`,
	"<", "&lt;", "&", "&amp;", "://", `\://`, "www.", `www\.`)

// mentions escapes the @ of mentions, which notify users even in escaped markup.
func mentions(s string) string {
	var b strings.Builder
	for i := range len(s) {
		switch {
		case s[i] != '@', i > 0 && (s[i-1] == '@' || '0' <= s[i-1] && s[i-1] <= '9' || 'a' <= s[i-1]|0x20 && s[i-1]|0x20 <= 'z'):
			b.WriteByte(s[i])
		default:
			b.WriteString(`\x40`)
		}
	}
	return b.String()
}

// Code returns s as a code span of a Markdown document, also for a table.
func Code(s string) string {
	// Backticks and pipes would end the span or the cell.
	return "`" + strings.NewReplacer("`", `\x60`, "|", `\x7c`).Replace(Text(s)) + "`"
}

// JSON returns an encoder that also escapes the characters that [Text] does, so that JSON can be printed to a terminal. Strings are
// preserved, except for bytes that are not UTF-8.
func JSON(w io.Writer) *json.Encoder {
	enc := json.NewEncoder(jsonWriter{w})
	enc.SetEscapeHTML(false)
	return enc
}

// ones has a 1 in each byte. Adding it to bytes up to 0x7f sets the top bit of those that are 0x7f.
const ones = 0x0101010101010101

// jsonWriter is written whole values, in which only strings have such characters.
type jsonWriter struct{ w io.Writer }

func (j jsonWriter) Write(p []byte) (int, error) {
	var out []byte
	from := 0 // start of the bytes that are not in out yet
	for i := 0; i < len(p); {
		// The encoder has escaped control characters except DEL. Logs of relocations have megabytes, so skip eight bytes at a time.
		if len(p)-i >= 8 {
			if w := binary.LittleEndian.Uint64(p[i:]); (w|(w+ones))&(ones<<7) == 0 {
				i += 8
				continue
			}
		}
		if p[i] < 0x7f {
			i++
			continue
		}
		r, n := utf8.DecodeRune(p[i:])
		if !strconv.IsPrint(r) {
			out = append(out, p[from:i]...)
			for _, unit := range utf16.AppendRune(nil, r) {
				out = fmt.Appendf(out, `\u%04x`, unit)
			}
			from = i + n
		}
		i += n
	}
	if from == 0 {
		return j.w.Write(p)
	}
	if _, err := j.w.Write(append(out, p[from:]...)); err != nil {
		return 0, err
	}
	return len(p), nil
}
