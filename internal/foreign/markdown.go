package foreign

import (
	"regexp"
	"strings"
)

// Markdown returns s as text of a Markdown document, also in a table or a list: nothing in it is
// markup, a link or a mention.
func Markdown(s string) string {
	s = markup.Replace(Text(s))
	s = mention.ReplaceAllString(s, `$1\x40`)
	return leading.ReplaceAllString(s, `\$1`)
}

var (
	markup = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "|", `\|`, "~", `\~`, "$", `\$`,
		"<", "&lt;", "&", "&amp;", "://", `\://`, "www.", `www\.`)
	// mention is an @ that code hosts read as "tell this user", which no backslash prevents.
	mention = regexp.MustCompile(`(^|[^0-9A-Za-z@])@`)
	// leading is what makes a heading, a list or a quote of a line.
	leading = regexp.MustCompile(`^([#>+=-])`)
)

// Code returns s as a code span of a Markdown document, also in a table.
func Code(s string) string {
	// Backticks and pipes would end the span or the cell, and can be escaped in some places only.
	return "`" + strings.NewReplacer("`", `\x60`, "|", `\x7c`).Replace(Text(s)) + "`"
}
