// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strings"
	"sync"

	"github.com/btfgen/btfgen/internal/text/escape"
)

// roff is the option as it is typed, marked up.
func (o *described) roff() string {
	text := roffBold(o.names[0])
	for _, n := range o.names[1:] {
		text = roffBold(n) + ", " + text
	}
	if o.value != "" {
		text += " " + roffArguments(o.value)
	}
	return text
}

// roffWriter writes the macros of man(7).
//
// The Markdown renderer that urfave/cli brings along would not do: it leaves hyphens and quotes as they are, for which
// groff takes typographic ones, so that nothing which a page has could be found in it or copied from it.
type roffWriter struct{ strings.Builder }

// macro writes a line with a macro.
func (r *roffWriter) macro(name string, arguments ...string) {
	r.WriteString("." + name)
	for _, a := range arguments {
		r.WriteString(` "` + roffText(a) + `"`)
	}
	r.WriteByte('\n')
}

// title begins a page. mandoc wants dates with plain hyphens. Words stay whole, since most that are long are names.
func (r *roffWriter) title(name, date, source string) {
	r.WriteString(`.TH "` + roffText(strings.ToUpper(name)) + `" ` + manSection + ` "` + date + `" "` + roffText(source) + `" "User Commands"` + "\n")
	r.WriteString(".nh\n.ad l\n")
}

// line writes a line of text, which is marked up already.
func (r *roffWriter) line(text string) {
	if strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	r.WriteString(text + "\n")
}

// item writes what a term means. Both are marked up already.
func (r *roffWriter) item(term, meaning string) {
	r.macro("TP", "8")
	r.line(term)
	r.line(meaning)
}

// markdown writes as much of Markdown as chapters and descriptions of commands have: paragraphs, lists, tables, code and
// links. Lines that begin with a space are rows of which the last column explains the others, as help has them.
func (r *roffWriter) markdown(text string) {
	var head []string // of the table that lines are in
	inside := true    // a paragraph, which a section begins with
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		cells, isRow := tableRow(line)
		if !isRow {
			head = nil
		}
		switch item, isItem := strings.CutPrefix(line, "- "); {
		case line == "":
			inside = false
		case isRow && head == nil:
			head = cells
		case isRow && strings.Trim(line, "|-:") == "":
		case isRow:
			r.row(head, cells)
		case isItem:
			r.macro("IP", "\u2022", "2")
			r.line(roffInline(item))
			inside = true
		case line[0] == ' ':
			at := max(strings.LastIndex(line, "  ")+2, 0)
			r.item(roffBold(strings.Join(strings.Fields(line[:at]), " ")), roffInline(line[at:]))
			inside = false
		default:
			if !inside {
				r.macro("PP")
			}
			inside = true
			r.line(roffInline(line))
		}
	}
}

// tableRow returns the cells of a line of a table.
func tableRow(line string) ([]string, bool) {
	if len(line) < 2 || line[0] != '|' {
		return nil, false
	}
	cells := strings.Split(strings.Trim(line, "|"), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells, true
}

// row writes a row of a table as an item. Of several columns beside the first each is told by its head.
func (r *roffWriter) row(head, cells []string) {
	var parts []string
	for i, c := range cells[1:] {
		switch {
		case c == "":
		case len(cells) == 2:
			parts = append(parts, c)
		default:
			parts = append(parts, head[i+1]+": "+c)
		}
	}
	r.item(roffBold(strings.Trim(cells[0], "`")), roffInline(strings.Join(parts, "; ")))
}

// Other runs than those that write pages do without these.
var (
	markdownLink = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\[([^]]*)\]\(([^)#]*)[^)]*\)`) })
	upperWord    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[A-Z][A-Z_]*|[^A-Z]+`) })
)

// roffInline marks up what is code, and says where links lead.
func roffInline(text string) string {
	text = markdownLink().ReplaceAllString(text, "docs/$2")
	var b strings.Builder
	for i, part := range strings.Split(text, "`") {
		if i%2 == 1 {
			b.WriteString(roffBold(part))
		} else {
			b.WriteString(roffText(part))
		}
	}
	return b.String()
}

func roffBold(text string) string { return `\fB` + roffText(text) + `\fR` }

// roffArguments marks up what stands for something: the words in capitals.
func roffArguments(text string) string {
	var b strings.Builder
	for _, part := range upperWord().FindAllString(text, -1) {
		if part[0] >= 'A' && part[0] <= 'Z' {
			b.WriteString(`\fI` + roffText(part) + `\fR`)
		} else {
			b.WriteString(roffText(part))
		}
	}
	return b.String()
}

// roffText escapes what roff would take for something else, or print otherwise.
func roffText(text string) string {
	var b strings.Builder
	for _, c := range text {
		switch c {
		case '\\':
			b.WriteString(`\e`)
		case '-':
			b.WriteString(`\-`)
		case '\'':
			b.WriteString(`\(aq`)
		case '`':
			b.WriteString(`\(ga`)
		case '"':
			b.WriteString(`\(dq`)
		case '^':
			b.WriteString(`\(ha`)
		case '~':
			b.WriteString(`\(ti`)
		default:
			if c > '~' {
				escape.Fprintf(&b, `\[u%04X]`, c)
			} else {
				b.WriteRune(c)
			}
		}
	}
	return b.String()
}
