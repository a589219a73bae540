// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/text/escape"
)

// chapter is a part of what holds for all commands, in Markdown. docs/cli.md has it as it is, btfgen(1) as roff has it.
type chapter struct{ title, text string }

// chapters are in the order in which they are read. The first has no title.
func chapters() []chapter {
	return []chapter{
		{"", "Options may stand before and after arguments; what follows `--` is an argument. Data goes to standard\n" +
			"output or to the file of `-o` (`-` is standard output), all else to standard error.\n"},
		{"Exit status", "| status | when |\n|--:|---|\n" +
			"| 0 | done |\n" +
			"| 1 | failed: nothing useful came out; or a defect of btfgen (please report it, with what `--debug` prints) |\n" +
			"| 2 | wrong usage, found before any work |\n" +
			"| 3 | done, with findings that count |\n" +
			"| 130, 143, 129 | ended by INT, TERM or HUP |\n\n" +
			"`--fail-on LIST` says which findings count: classes with commas between them, or `none`. It replaces the default. Findings are\n" +
			"told on standard error, each with its class, unless standard output shows them; `--quiet` leaves out those that do not count.\n" +
			"The classes:\n\n" + classTable() +
			"\nIn GitHub Actions (`GITHUB_ACTIONS=true`) the findings that count are annotations as well, and the page of the step\n" +
			"(`GITHUB_STEP_SUMMARY`) gets what the run came to.\n"},
		{"JSON", "`--json` writes one document or, where a command shows many things, a line for each. Findings have a `class`, a `message`\n" +
			"and, as far as known, an `object`, a `kernel` and a `file`. Kernels are ID/VERSION_ID/ARCH/RELEASE; numbers of bytes are exact.\n" +
			"Standard error has only the findings then. [schema](schema) has a JSON Schema for each command.\n"},
		{"What is not typed", "Options and arguments may stand in a file ([config.md](config.md)), and some options in environment variables. What is typed goes\n" +
			"before variables, and these before the file. -v prints what was taken from where.\n\n" + variableTable()},
	}
}

// classTable says which findings each command tells, and which of them count.
func classTable() string {
	b := new(strings.Builder)
	for _, c := range slices.Sorted(maps.Keys(meanings)) {
		escape.Fprintf(b, "- `%s`: %s\n", c, meanings[c])
	}
	escape.Fprintf(b, "\n| command | counts unless `--fail-on` says otherwise | counts only if it does |\n|---|---|---|\n")
	for _, n := range slices.Sorted(maps.Keys(contract)) {
		if len(contract[n].all()) == 0 {
			continue
		}
		escape.Fprintf(b, "| %s | %s | %s |\n", n, listed(contract[n].counts), listed(contract[n].others))
	}
	return b.String()
}

// variableTable says which environment variables stand for options.
func variableTable() string {
	b := new(strings.Builder)
	escape.Fprintf(b, "| variable | option |\n|---|---|\n")
	for _, n := range slices.Sorted(maps.Keys(variables)) {
		list := ""
		if n == "btf" {
			list = ", several with : between them"
		}
		escape.Fprintf(b, "| `%s` | `--%s`%s |\n", variables[n], n, list)
	}
	return b.String()
}

func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
