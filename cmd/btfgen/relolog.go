// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"runtime"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/job/dryrun"
	"github.com/btfgen/btfgen/internal/report/logs"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/pkg/relo"
)

func relologCommand() *cli.Command {
	return &cli.Command{
		Name:      "relolog",
		Usage:     "show how each relocation is decided, and why",
		ArgsUsage: "OBJECT...",
		Description: "Resolves the relocations of objects as libbpf would, without loading anything, and writes one line for each.\n" +
			"Of several kernels it shows first what differs between them. Patterns are those of a shell. Only\n" +
			"relocations that are shown count as findings. OBJECT is as for generate.",
		Flags: append(sourceFlags(),
			jsonFlag("a line for each relocation and kernel, and for each other finding,"),
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "show source lines, candidates and reasons"},
			&cli.StringSliceFlag{Name: "program", Usage: "only relocations in functions or sections that match `PATTERN`"},
			&cli.StringSliceFlag{Name: "result", Usage: "only those with `RESULT` resolved, absent, poisoned, ambiguous or error"},
			&cli.StringSliceFlag{Name: "type", Usage: "only those of local types that match `PATTERN`"},
			&cli.StringFlag{Name: "color", Usage: "colour results: `WHEN` auto (on a terminal, unless NO_COLOR is set), always or never", Value: "auto"},
			&cli.IntFlag{Name: "jobs", Aliases: []string{"j"}, Usage: "work on `N` objects at once", Value: runtime.GOMAXPROCS(0), DefaultText: "number of CPUs"},
		),
		Action: runRelolog,
	}
}

func runRelolog(c *cli.Context) error {
	opts, err := logOptions(c)
	if err != nil {
		return err
	}
	objs, err := readObjects(c, c.Args().Slice())
	if err != nil {
		return err
	}
	corp, err := openCorpus(c, corpus.Options{})
	if err != nil {
		return err
	}
	p := logs.NewPrinter(c.App.Writer, opts)
	if c.Bool("json") {
		p = logs.NewJSONPrinter(c.App.Writer, opts.Filter)
	}
	printed := 0
	print := func(l *relo.Log) error {
		printed++
		return p.Print(l)
	}
	err = dryrun.Run(c.Context, dryrun.Config{Objects: objs.list, Corpus: corp, Jobs: c.Int("jobs")}, print, func(e *corpus.Error) {
		tellLeftOut(c, []*corpus.Error{e})
	})
	if err != nil {
		return err
	}
	if err := p.Close(); err != nil {
		return err
	}
	if printed == 0 {
		tellNotes(c)
		return errors.New("no object meets a kernel")
	}
	for _, g := range p.Unmatched.Programs {
		tellUnmatched(c, "program", g, "no relocation is in such a function or section")
	}
	for _, g := range p.Unmatched.Types {
		tellUnmatched(c, "type", g, "no relocation asks for such a type")
	}
	for _, r := range []relo.Result{relo.Poisoned, relo.Ambiguous, relo.Error} {
		if n := p.Shown[r]; n > 0 {
			record(c, finding{Class: class(r.String()), Message: words.Plural(n, "relocation")})
		}
	}
	return findingLines(c, poisoned, ambiguous, failed)
}

func logOptions(c *cli.Context) (o logs.Options, err error) {
	o.Verbose = c.Bool("verbose")
	if o.Filter.Programs, err = patterns(c, "program"); err != nil {
		return o, err
	}
	if o.Filter.Types, err = patterns(c, "type"); err != nil {
		return o, err
	}
	for _, r := range c.StringSlice("result") {
		var result relo.Result
		if result.UnmarshalText([]byte(r)) != nil {
			return o, usagef("--result %q: want resolved, absent, poisoned, ambiguous or error", r)
		}
		o.Filter.Results = append(o.Filter.Results, result)
	}
	if c.Bool("json") && (o.Verbose || c.IsSet("color")) {
		return o, usagef("--json does not go with --verbose or --color")
	}
	if c.Int("jobs") < 1 {
		return o, usagef("--jobs %d: want at least 1", c.Int("jobs"))
	}
	o.Color, err = colored(c)
	return o, err
}

// colored decides whether standard output gets colour.
func colored(c *cli.Context) (bool, error) {
	switch when := c.String("color"); when {
	case "always":
		return true, nil
	case "never":
		return false, nil
	case "auto":
		return isTerminal(c.App.Writer) && os.Getenv("NO_COLOR") == "", nil
	default:
		return false, usagef("--color %q: want auto, always or never", when)
	}
}
