// SPDX-License-Identifier: Apache-2.0

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
	for _, c := range chapters() {
		if c.title != "" {
			fmt.Fprintf(&b, "\n## %s\n\n", c.title)
		}
		b.WriteString(c.text)
	}
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
	fmt.Fprintf(b, "\n%s %s\n\n    %s %s\n\n%s.\n", level, name, name, synopsis(c), sentence(c.Usage))
	if c.Description != "" {
		fmt.Fprintf(b, "\n%s\n", c.Description)
	}
	for i, o := range options(c) {
		if i == 0 {
			fmt.Fprintf(b, "\n| option | meaning |\n|---|---|\n")
		}
		optionRow(b, o)
	}
}

func optionRow(b *strings.Builder, o *described) {
	value := ""
	if o.value != "" {
		value = " " + o.value
	}
	fmt.Fprintf(b, "| `%s`%s | %s |\n", strings.Join(o.names, "`, `"), value, strings.ReplaceAll(o.usage, "|", "\\|"))
}
