package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// reference describes all commands and options in Markdown.
func reference(app *cli.App) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Command line\n\n<!-- Made by `go test ./cmd/btfgen -run TestReference -update`. -->\n\n")
	fmt.Fprintf(&b, "Options may stand before and after arguments; what follows `--` is an argument. Data goes to standard\n"+
		"output or to the file of `-o` (`-` is standard output), all else to standard error.\n\n"+
		"## Exit status\n\n"+
		"| status | when |\n|--:|---|\n"+
		"| 0 | done |\n"+
		"| 1 | failed: nothing useful came out; or a defect of btfgen (please report it, with what `--debug` prints) |\n"+
		"| 2 | wrong usage, found before any work |\n"+
		"| 3 | done, with findings that count |\n"+
		"| 130, 143, 129 | ended by INT, TERM or HUP |\n\n"+
		"`--fail-on LIST` says which findings count: classes with commas between them, or `none`. It replaces the default. Findings are\n"+
		"told on standard error, each with its class, unless standard output shows them; `--quiet` leaves out those that do not count.\n"+
		"The classes:\n\n")
	classTable(&b)
	fmt.Fprintf(&b, "\nIn GitHub Actions (`GITHUB_ACTIONS=true`) the findings that count are annotations as well, and the page of the step\n"+
		"(`GITHUB_STEP_SUMMARY`) gets what the run came to.\n\n"+
		"## JSON\n\n"+
		"`--json` writes one document or, where a command shows many things, a line for each. Findings have a `class`, a `message`\n"+
		"and, as far as known, an `object`, a `kernel` and a `file`. Kernels are ID/VERSION_ID/ARCH/RELEASE; numbers of bytes are exact.\n"+
		"Standard error has only the findings then. [schema](schema) has a JSON Schema for each command.\n")
	fmt.Fprintf(&b, "\n## What is not typed\n\n"+
		"Options and arguments may stand in a file ([config.md](config.md)), and some options in environment variables. What is typed goes\n"+
		"before variables, and these before the file. -v prints what was taken from where.\n\n"+
		"| variable | option |\n|---|---|\n")
	for _, n := range slices.Sorted(maps.Keys(variables)) {
		list := ""
		if n == "btf" {
			list = ", several with : between them"
		}
		fmt.Fprintf(&b, "| `%s` | `--%s`%s |\n", variables[n], n, list)
	}
	for _, c := range app.Commands {
		command(&b, "btfgen", c)
	}
	return b.String()
}

// classTable says which findings each command tells, and which of them count.
func classTable(b *strings.Builder) {
	names := slices.Sorted(maps.Keys(contract))
	for _, c := range slices.Sorted(maps.Keys(meanings)) {
		fmt.Fprintf(b, "- `%s`: %s\n", c, meanings[c])
	}
	fmt.Fprintf(b, "\n| command | counts unless `--fail-on` says otherwise | counts only if it does |\n|---|---|---|\n")
	for _, n := range names {
		if len(contract[n].all()) == 0 {
			continue
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", n, listed(contract[n].counts), listed(contract[n].others))
	}
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
		optionRow(b, f)
	}
}

func optionRow(b *strings.Builder, f cli.Flag) {
	o := describe(f)
	if o == nil {
		return
	}
	value := ""
	if o.value != "" {
		value = " " + o.value
	}
	fmt.Fprintf(b, "| `%s`%s | %s |\n", strings.Join(o.names, "`, `"), value, strings.ReplaceAll(o.usage, "|", "\\|"))
}

func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
