// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/text/escape"
)

// With --json a command prints one document, or one line for each of many results. docs/schema has a schema for each
// command. Fields are only added.

func jsonFlag(what string) cli.Flag {
	return &cli.BoolFlag{Name: "json", Usage: "print " + what + " as JSON"}
}

// allFindings is the last field of documents.
type allFindings struct {
	Findings []*finding `json:"findings"`
}

func findingsOf(c *cli.Context) allFindings {
	found(c).runDeferred()
	return allFindings{append([]*finding{}, found(c).all...)}
}

// document prints the document of a run if --json is set.
func document(c *cli.Context, v any) error {
	if !c.Bool("json") {
		return nil
	}
	enc := escape.JSON(c.App.Writer)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// findingLines prints a line for each finding if --json is set, except for classes that other lines contain.
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
