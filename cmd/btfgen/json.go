// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/text/escape"
)

// What --json writes: a document where a run comes to one thing, lines where it comes to many. docs/schema has a schema for
// each command, to which tests hold them. Fields are only ever added.

func jsonFlag(what string) cli.Flag {
	return &cli.BoolFlag{Name: "json", Usage: "write " + what + " to standard output, as JSON"}
}

// allFindings is the last field of the documents of commands with findings.
type allFindings struct {
	Findings []*finding `json:"findings"`
}

func findingsOf(c *cli.Context) allFindings {
	found(c).end()
	return allFindings{append([]*finding{}, found(c).all...)}
}

// document writes what a run came to, if --json asks for that.
func document(c *cli.Context, v any) error {
	if !c.Bool("json") {
		return nil
	}
	return writeJSON(c, v)
}

func writeJSON(c *cli.Context, v any) error {
	enc := escape.JSON(c.App.Writer)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// findingLines writes a line for each finding, but for those of the classes that other lines show.
func findingLines(c *cli.Context, shown ...class) error {
	if !c.Bool("json") {
		return nil
	}
	enc := escape.JSON(c.App.Writer)
	for _, x := range findingsOf(c).Findings {
		if slices.Contains(shown, x.Class) {
			continue
		}
		if err := enc.Encode(x); err != nil {
			return err
		}
	}
	return nil
}

// oneOutput refuses --json where standard output is to have something else.
func oneOutput(c *cli.Context, option, path string) error {
	if c.Bool("json") && path == "-" {
		return usagef("--json does not go with %s -: both are for standard output", option)
	}
	return nil
}
