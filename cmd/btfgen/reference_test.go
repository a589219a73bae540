package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
)

// reference describes all commands and options in Markdown.
func reference(app *cli.App) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Command line\n\n<!-- Made by `go test ./cmd/btfgen -run TestReference -update`. -->\n\n")
	fmt.Fprintf(&b, "Options may stand before and after arguments; what follows `--` is an argument. Data goes to standard\n"+
		"output or to the file of `-o` (`-` is standard output), all else to standard error.\n\n"+
		"Exit status: 0 all well; 1 failed, or a defect of btfgen (please report it, with what `--debug` prints); 2 wrong\n"+
		"usage; 3 finished, with findings (something unresolved, skipped, different or not found); 130, 143 and 129\n"+
		"ended by INT, TERM or HUP.\n")
	for _, c := range app.Commands {
		command(&b, "btfgen", c)
	}
	return b.String()
}

func command(b *strings.Builder, prefix string, c *cli.Command) {
	name := prefix + " " + c.Name
	if len(c.Subcommands) > 0 {
		fmt.Fprintf(b, "\n## %s\n\n%s.\n", name, sentence(c.Usage))
		for _, s := range c.Subcommands {
			command(b, name, s)
		}
		return
	}
	level := strings.Repeat("#", 1+strings.Count(name, " "))
	fmt.Fprintf(b, "\n%s %s\n\n    %s [options] %s\n\n%s.\n", level, name, name, c.ArgsUsage, sentence(c.Usage))
	if c.Description != "" {
		fmt.Fprintf(b, "\n%s\n", c.Description)
	}
	if len(c.Flags) == 0 {
		return
	}
	fmt.Fprintf(b, "\n| option | meaning |\n|---|---|\n")
	for _, f := range c.Flags {
		option(b, f)
	}
}

func option(b *strings.Builder, f cli.Flag) {
	d, ok := f.(cli.DocGenerationFlag)
	if v, hidden := f.(cli.VisibleFlag); !ok || hidden && !v.IsVisible() {
		return
	}
	var names []string
	for _, n := range f.Names() {
		dash := "--"
		if len(n) == 1 {
			dash = "-"
		}
		names = append(names, "`"+dash+n+"`")
	}
	usage := d.GetUsage()
	value := ""
	if i := strings.IndexByte(usage, '`'); i >= 0 {
		if j := strings.IndexByte(usage[i+1:], '`'); j >= 0 {
			value = " " + usage[i+1:i+1+j]
			usage = strings.ReplaceAll(usage, "`", "")
		}
	}
	if def := d.GetDefaultText(); def != "" && d.TakesValue() && d.GetValue() != "" {
		usage += " (default: " + strings.Trim(def, `"`) + ")"
	}
	fmt.Fprintf(b, "| %s%s | %s |\n", strings.Join(names, ", "), value, strings.ReplaceAll(usage, "|", "\\|"))
}

func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
