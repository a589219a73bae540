// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/text/escape"
)

func runMan(c *cli.Context) error {
	date, err := sourceDate()
	if err != nil {
		return err
	}
	dir, command := c.String("output"), strings.Join(c.Args().Slice(), " ")
	if dir != "" && command != "" {
		return usagef("man -o writes the pages of all commands: it takes no COMMAND")
	}
	for _, p := range topics(c.App) {
		page := p.roff(c.App, date)
		switch {
		case dir != "":
			if err := os.MkdirAll(dir, 0o777); err != nil {
				return err
			}
			if err := writeOut(c, filepath.Join(dir, manName(p.name)+".1"), []byte(page)); err != nil {
				return err
			}
		case p.name == strings.TrimSpace(c.App.Name+" "+command):
			_, err := io.WriteString(c.App.Writer, page)
			return err
		}
	}
	if dir == "" {
		return usagef("man: no command %q", command)
	}
	return nil
}

// sourceDate returns the date of reproducible builds, from $SOURCE_DATE_EPOCH, or "".
func sourceDate() (string, error) {
	epoch := os.Getenv("SOURCE_DATE_EPOCH")
	if epoch == "" {
		return "", nil
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil || seconds < 0 {
		return "", usagef("SOURCE_DATE_EPOCH %q: want seconds since 1970", epoch)
	}
	return time.Unix(seconds, 0).UTC().Format(time.DateOnly), nil
}

// exitStatus is the section of a manual page about the findings of a command.
func exitStatus(command string) section {
	text := "0 for success, 1 for failure, and 2 for wrong usage.\n"
	if classes := commandClasses[command].all(); len(classes) > 0 {
		text = "0 for success, 1 for failure, 2 for wrong usage, and 3 for findings of the classes in\n`--fail-on`. The classes of this command are:\n\n"
		for _, c := range classes {
			text += "- `" + c + "`: " + meanings[c] + "\n"
		}
	}
	return section{"Exit status", text}
}

// manName returns the name of the page of a command.
func manName(command string) string { return strings.ReplaceAll(command, " ", "-") }

// roff returns the manual page, in the macros of man(7).
//
// urfave/cli can write manual pages, too, but does not escape hyphens and quotes. groff replaces these by typographic ones,
// which cannot be searched for or copied. Hyphenation is off, because most long words are names.
func (p *topic) roff(app *cli.App, date string) string {
	b := new(strings.Builder)
	escape.Fprintf(b, ".TH \"%s\" 1 \"%s\" \"%s\" \"User Commands\"\n.nh\n.ad l\n",
		roffText(strings.ToUpper(manName(p.name))), date, roffText(app.Name+" "+app.Version))
	escape.Fprintf(b, ".SH NAME\n%s \\- %s\n", roffText(manName(p.name)), roffText(p.Usage))
	all := p.sections()
	if path := strings.TrimPrefix(p.name, app.Name); path == "" {
		all = slices.Concat(all, written("Chapters")[1:], written("Manual")[1:])
	} else {
		up := p.name[:strings.LastIndex(p.name, " ")]
		all = append(all, exitStatus(path[1:]), section{"See also", "`" + manName(up) + "`(1)\n"})
	}
	for _, s := range all {
		escape.Fprintf(b, ".SH %s\n%s", strings.ToUpper(s.title), escape.Own(roff(s.text)))
	}
	return b.String()
}

// roff converts the Markdown of a section.
func roff(text string) string {
	var b strings.Builder
	for i, block := range blocks(text) {
		if i > 0 && block[0] != '-' {
			b.WriteString(".PP\n")
		}
		if block[0] == ' ' {
			b.WriteString(".nf\n.RS 4\n")
		}
		for line := range strings.SplitSeq(block, "\n") {
			switch block[0] {
			case ' ':
				b.WriteString(roffLine(roffText(line[4:])))
			case '-':
				term, meaning := listItem(line)
				b.WriteString(".TP 8\n" + roffLine(roffInline(term)) + roffLine(roffInline(meaning)))
			default:
				b.WriteString(roffLine(roffInline(line)))
			}
		}
		if block[0] == ' ' {
			b.WriteString(".RE\n.fi\n")
		}
	}
	return b.String()
}

// roffLine returns a line that begins with no macro.
func roffLine(text string) string {
	if strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	return text + "\n"
}

// roffInline converts a line in which code is in backquotes.
func roffInline(text string) string {
	var b strings.Builder
	for i, part := range strings.Split(text, "`") {
		if i%2 == 1 {
			b.WriteString(`\fB` + roffText(part) + `\fR`)
		} else {
			b.WriteString(roffText(part))
		}
	}
	return b.String()
}

// roffText escapes what roff would interpret, or print as another character.
var roffText = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, `"`, `\(dq`, "^", `\(ha`, "~", `\(ti`, "…", `\[u2026]`).Replace
