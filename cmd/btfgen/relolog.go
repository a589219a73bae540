package main

import (
	"os"
	"runtime"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/dryrun"
	"github.com/btfgen/btfgen/internal/logtext"
	"github.com/btfgen/btfgen/pkg/relolog"
)

func relologCommand() *cli.Command {
	return &cli.Command{
		Name:      "relolog",
		Usage:     "show how each relocation is decided, and why",
		ArgsUsage: "OBJECT...",
		Description: "Resolves the relocations of objects as libbpf would, without loading anything, and writes one line for each.\n" +
			"Of several kernels it shows first what differs between them. Patterns are those of a shell. The exit status\n" +
			"is 3 if what is shown has a poisoned, ambiguous or failed relocation, or if a kernel or object was skipped.",
		Flags: append(sourceFlags(),
			&cli.BoolFlag{Name: "json", Usage: "write one line of JSON per relocation and kernel, as docs/relolog.md has it"},
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
	stderr := c.App.ErrWriter
	objs, err := readObjects(c.Context, c.Args().Slice(), stderr)
	if err != nil {
		return err
	}
	corp, err := openCorpus(c, false)
	if err != nil {
		return err
	}
	p := logtext.NewPrinter(c.App.Writer, opts)
	if c.Bool("json") {
		p = logtext.NewJSONPrinter(c.App.Writer, opts.Filter)
	}
	bad := objs.bad
	err = dryrun.Run(c.Context, dryrun.Config{Objects: objs.list, Corpus: corp, Jobs: c.Int("jobs")}, p.Print, func(e *corpus.Error) {
		bad++
		reportSkipped(stderr, []*corpus.Error{e})
	})
	if err != nil {
		return err
	}
	if err := p.Close(); err != nil {
		return err
	}
	if bad > 0 || p.Findings {
		return errFindings
	}
	return nil
}

func logOptions(c *cli.Context) (o logtext.Options, err error) {
	o.Verbose = c.Bool("verbose")
	o.Filter = logtext.Filter{Programs: c.StringSlice("program"), Types: c.StringSlice("type")}
	if err := o.Filter.Check(); err != nil {
		return o, usageError{err}
	}
	for _, r := range c.StringSlice("result") {
		if !slices.Contains(logtext.Results, relolog.Result(r)) {
			return o, usagef("--result %q: want resolved, absent, poisoned, ambiguous or error", r)
		}
		o.Filter.Results = append(o.Filter.Results, relolog.Result(r))
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
