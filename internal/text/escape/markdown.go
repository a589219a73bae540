// SPDX-License-Identifier: Apache-2.0

package escape

import "strings"

// Markdown returns s as text of a Markdown document, also in a table or a list: nothing in it is
// markup, a link or a mention.
func Markdown(s string) string {
	s = markup.Replace(mentions(Text(s)))
	if s != "" && strings.Contains("#>+=-", s[:1]) { // would make a heading, a list or a quote of a line
		return `\` + s
	}
	return s
}

var markup = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "|", `\|`, "~", `\~`, "$", `\$`,
	"<", "&lt;", "&", "&amp;", "://", `\://`, "www.", `www\.`)

// mentions escapes what code hosts read as "tell this user", which no markup prevents.
func mentions(s string) string {
	if !strings.Contains(s, "@") {
		return s
	}
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

// Code returns s as a code span of a Markdown document, also in a table.
func Code(s string) string {
	// Backticks and pipes would end the span or the cell, and can be escaped in some places only.
	return "`" + strings.NewReplacer("`", `\x60`, "|", `\x7c`).Replace(Text(s)) + "`"
}
