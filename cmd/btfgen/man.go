// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/output"
)

// manSection is the section of the manual for commands that users run.
const manSection = "1"

func manCommand() *cli.Command {
	return &cli.Command{
		Name:      "man",
		Usage:     "write manual pages",
		ArgsUsage: "[COMMAND]",
		Description: "Writes the page of a command, such as archive list, or of btfgen itself to standard output: 'btfgen man generate | man -l -'\n" +
			"shows one. With -o it writes those of all commands, which man finds in share/man/man1 beside the program's bin. Pages have\n" +
			"a date if SOURCE_DATE_EPOCH is set, to seconds since 1970.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write all pages into the directory `DIR`", TakesFile: true},
		},
		Action: runMan,
	}
}

func runMan(c *cli.Context) error {
	date, err := sourceDate()
	if err != nil {
		return err
	}
	words := c.Args().Slice()
	switch dir := c.String("output"); {
	case dir == "":
	case len(words) > 0:
		return usagef("man -o writes the pages of all commands, so that no COMMAND goes with it")
	default:
		return writeManPages(c, dir, date)
	}
	name := strings.Join(append([]string{c.App.Name}, words...), " ")
	for _, p := range manPages(c.App) {
		if p.command == name {
			_, err := io.WriteString(c.App.Writer, p.roff(date))
			return err
		}
	}
	return usagef("man: no command %q", strings.Join(words, " "))
}

// writeManPages puts all pages into a directory.
func writeManPages(c *cli.Context, dir, date string) (err error) {
	d := output.OpenDir(dir)
	defer func() { err = errors.Join(err, d.Close()) }()
	for _, p := range manPages(c.App) {
		if err := c.Context.Err(); err != nil {
			return err
		}
		if err := d.Put(p.file(), func(w io.Writer) error {
			_, err := io.WriteString(w, p.roff(date))
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// sourceDate returns the date that outputs are to have, by the seconds since 1970 that builds which can be repeated have in their
// environment; "" without them.
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

// manPage is the page of the program, of a group of commands, or of a command.
type manPage struct {
	app     *cli.App
	command string         // as it is typed: "btfgen archive list"
	usage   string         // what it is for
	within  []*cli.Command // the commands of a program or group
	leaf    *cli.Command   // else the command
	see     []string       // commands with pages to look at as well
}

// manPages returns all pages, the program's first.
func manPages(app *cli.App) []*manPage {
	top := &manPage{app: app, command: app.Name, usage: app.Usage, within: app.Commands}
	pages := []*manPage{top}
	var walk func(up *manPage)
	walk = func(up *manPage) {
		for _, c := range up.within {
			p := &manPage{app: app, command: up.command + " " + c.Name, usage: c.Usage, within: c.Subcommands, see: []string{up.command}}
			for _, s := range up.within {
				if s != c {
					p.see = append(p.see, up.command+" "+s.Name)
				}
			}
			if len(c.Subcommands) == 0 {
				p.leaf = c
			}
			pages = append(pages, p)
			walk(p)
		}
	}
	walk(top)
	return pages
}

// manTitle is what the page of a command is called.
func manTitle(command string) string { return strings.ReplaceAll(command, " ", "-") }

func (p *manPage) file() string { return manTitle(p.command) + "." + manSection }

// roff is the page.
func (p *manPage) roff(date string) string {
	r := new(roffWriter)
	r.title(manTitle(p.command), date, p.app.Name+" "+p.app.Version)
	r.macro("SH", "NAME")
	r.line(roffText(manTitle(p.command)) + ` \- ` + roffText(p.usage))
	r.macro("SH", "SYNOPSIS")
	arguments := "COMMAND [options] ARGUMENT..."
	if p.leaf != nil {
		arguments = synopsis(p.leaf)
	}
	r.line(roffBold(p.command) + " " + roffArguments(arguments))
	if p.leaf != nil {
		p.describe(r)
	} else {
		p.list(r)
	}
	if len(p.see) > 0 {
		r.macro("SH", "SEE ALSO")
		for i, s := range p.see {
			comma := ","
			if i == len(p.see)-1 {
				comma = ""
			}
			r.line(roffBold(manTitle(s)) + "(" + manSection + ")" + comma)
		}
	}
	return r.String()
}

// list writes what there is on commands of which others are part.
func (p *manPage) list(r *roffWriter) {
	about := []chapter{{text: sentence(p.usage) + "."}}
	if p.command == p.app.Name {
		about = chapters()
		about[0].text = sentence(p.usage) + ".\n\n" + about[0].text
	}
	r.macro("SH", "DESCRIPTION")
	r.markdown(about[0].text)
	r.macro("SH", "COMMANDS")
	for _, c := range p.within {
		r.item(roffBold(manTitle(p.command+" "+c.Name))+"("+manSection+")", roffText(c.Usage))
	}
	for _, c := range about[1:] {
		r.macro("SH", strings.ToUpper(c.title))
		r.markdown(c.text)
	}
	if p.command == p.app.Name {
		r.macro("SH", "FILES")
		r.item(roffBold(configFile), roffText("options and arguments for commands that are run beside it"))
		r.macro("SH", "SEE ALSO")
		r.line("Files that are named docs/... here are in " + roffText("https://github.com/btfgen/btfgen") +
			", and in /usr/share/doc/btfgen where a package installed them.")
	}
}

// describe writes what there is on a command of which no others are part.
func (p *manPage) describe(r *roffWriter) {
	r.macro("SH", "DESCRIPTION")
	r.markdown(sentence(p.usage) + ".\n\n" + p.leaf.Description)
	for i, o := range options(p.leaf) {
		if i == 0 {
			r.macro("SH", "OPTIONS")
		}
		r.item(o.roff(), roffText(o.usage))
	}
	told := contract[strings.TrimPrefix(p.command, p.app.Name+" ")]
	if len(told.all()) == 0 {
		return
	}
	r.macro("SH", "EXIT STATUS")
	r.line(roffText("0 if all is done, 1 if nothing useful came out, 2 for wrong usage, 3 for findings of the classes of --fail-on;"))
	r.line(roffBold(p.app.Name) + "(" + manSection + ") has more. The classes:")
	for _, c := range told.all() {
		r.item(roffBold(string(c)), roffInline(meanings[c]))
	}
}
