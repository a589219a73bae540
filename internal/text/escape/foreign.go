// SPDX-License-Identifier: Apache-2.0

// Package escape prints what others have chosen: names of files, kernels, objects, programs, types
// and members, and errors, which name them. Such a name must neither do anything to the terminal or
// the log that it is printed on nor pretend to be a text of ours.
//
// A name is shown as it is as long as it can be read. What does not print is shown as Go's escapes
// have it: "a\nb\x1b[2J" is printed as a\nb\x1b[2J, on one line. Text that is escaped already stays as it
// is, so that names can be put together first and printed later. A backslash stays a backslash: escapes are there
// to be looked at, not to be undone. Only JSON keeps every name as it was.
//
// All output for people goes through [Fprintf], Markdown through [Markdown] and [Code], JSON through
// [JSON]. Functions are safe for concurrent use.
package escape

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Text returns s as terminals and logs may have it, on one line. It escapes control characters,
// what Unicode has to hide or reorder text, and bytes that are not UTF-8, and the two things that code hosts take
// for commands in a log, "::" at the beginning of a line and "##[".
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

// plain says whether Text has nothing to do, as with nearly all names.
func plain(s string) bool {
	for _, r := range s {
		if !strconv.IsPrint(r) {
			return false
		}
	}
	return utf8.ValidString(s) && !strings.Contains(s, "##[") && !strings.HasPrefix(strings.TrimLeft(s, " "), "::")
}

// Own is text of ours with control characters in it, such as colours. [Fprintf] prints it as it is.
type Own string

// Fprintf is fmt.Fprintf for people: it prints the format as it is, but of strings, errors and
// whatever else is no number what [Text] makes of them. %q has Go's quotes, which need no more.
func Fprintf(w io.Writer, format string, args ...any) (int, error) {
	escape(args)
	return fmt.Fprintf(w, format, args...)
}

// Sprintf is Fprintf into a string, which Fprintf prints as it is: what is columns stays columns.
func Sprintf(format string, args ...any) Own {
	escape(args)
	return Own(fmt.Sprintf(format, args...))
}

// escape replaces the arguments that Text changes. It does so in place, so that vet sees what the
// functions above are.
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

// name is an argument that Text changes.
type name struct{ text string }

// Format escapes what is printed as text. Widths count the escaped form.
func (n name) Format(s fmt.State, verb rune) {
	text := n.text
	if verb != 'q' {
		text, verb = Text(text), 's'
	}
	fmt.Fprintf(s, fmt.FormatString(s, verb), text)
}
