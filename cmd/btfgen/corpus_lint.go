// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/job/lint"
	"github.com/btfgen/btfgen/internal/text/escape"
)

func corpusLintCommand() *cli.Command {
	var codes strings.Builder
	for _, c := range lint.Codes() {
		escape.Fprintf(&codes, "\n    %-7s  %-14s  %s", c.Severity(), c, c.Text())
	}
	return &cli.Command{
		Name:      "lint",
		Usage:     "find what is wrong with a corpus",
		ArgsUsage: "SOURCE...",
		Description: "SOURCE is a file or a tree. The findings are:\n" +
			codes.String(),
		Flags: corpusCommandFlags(
			&cli.StringFlag{Name: "earlier", Usage: "report kernels that are in `FILE`, written by 'corpus list --json' (with --long if packages hold several), and not here any more", TakesFile: true},
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "list every kernel, and its path"},
			jsonFlag("the findings"),
		),
		Action: runCorpusLint,
	}
}

func runCorpusLint(c *cli.Context) error {
	opts, err := corpusOptions(c)
	if err != nil {
		return err
	}
	var earlier []lint.Entry
	if path := c.String("earlier"); path != "" {
		if earlier, err = lint.ReadListing(c.Context, path); err != nil {
			return err
		}
	}
	corp, err := openSources(c, opts, false)
	if err != nil {
		return err
	}
	cfg, stop := sweepOf(c, corp)
	rep, err := lint.Run(c.Context, lint.Config{
		Walk: cfg, Earlier: earlier, Selected: func(e *lint.Entry) bool { return opts.Selects(e.Key()) },
	})
	stop()
	if err != nil {
		return err
	}
	if !c.Bool("json") {
		err = rep.Text(c.App.Writer, c.Bool("verbose"))
	}
	say(c, "%s", rep.Summary())
	for _, f := range rep.Findings {
		x := finding{Class: class(f.Code.Severity().String()), Code: string(f.Code), Message: f.Code.Text(), Kernel: f.Kernel, File: f.Path}
		if f.Detail != "" {
			x.Message += " (" + f.Detail + ")"
		}
		record(c, x)
	}
	return cmp.Or(err, document(c, struct {
		*lint.Report
		allFindings
	}{rep, findingsOf(c)}))
}
