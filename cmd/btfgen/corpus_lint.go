package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/lint"
)

func corpusLintCommand() *cli.Command {
	var codes strings.Builder
	for _, c := range lint.Codes() {
		fmt.Fprintf(&codes, "\n    %-7s  %-14s  %s", c.Severity(), c, c.Text())
	}
	return &cli.Command{
		Name:      "lint",
		Usage:     "find what is wrong with a corpus",
		ArgsUsage: "SOURCE...",
		Description: "SOURCE is a file or a tree. The exit status is 3 if there is an error or a warning. The findings are:\n" +
			codes.String(),
		Flags: corpusCommandFlags(
			&cli.StringFlag{Name: "earlier", Usage: "report kernels that are in `FILE`, written by 'corpus list --json' (with --long if packages hold several), and not here any more", TakesFile: true},
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "list every kernel, and its path"},
			&cli.BoolFlag{Name: "json", Usage: "write JSON"},
		),
		Action: runCorpusLint,
	}
}

func runCorpusLint(c *cli.Context) error {
	opts, err := corpusOptions(c)
	if err != nil {
		return err
	}
	earlier, err := readListing(c.String("earlier"))
	if err != nil {
		return err
	}
	corp, err := openSources(c, opts, false)
	if err != nil {
		return err
	}
	cfg, stop := sweepOf(c, corp)
	rep, err := lint.Run(c.Context, lint.Config{
		Sweep: cfg, Earlier: earlier, Selected: func(e *lint.Entry) bool { return opts.Selects(e.Key()) },
	})
	stop()
	if err != nil {
		return err
	}
	if c.Bool("json") {
		err = writeJSON(c, rep)
	} else {
		err = rep.Text(c.App.Writer, c.Bool("verbose"))
		fmt.Fprintln(c.App.ErrWriter, rep.Summary())
	}
	if err == nil && rep.Errors+rep.Warnings > 0 {
		err = errFindings
	}
	return err
}

func readListing(path string) ([]lint.Entry, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := lint.ReadListing(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return list, nil
}
