// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/job/dryrun"
	"github.com/btfgen/btfgen/internal/report/logs"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/pkg/relo"
)

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
	objs.announce(c)
	p := logs.NewPrinter(c.App.Writer, opts)
	if c.Bool("json") {
		p = logs.NewJSONPrinter(c.App.Writer, opts.Filter)
	}
	printed := 0
	print := func(l dryrun.Log) error {
		printed++
		return p.Print(l.Object, l.Kernel, l.Entries)
	}
	var damage []*corpus.Error // errors about files with many kernels
	cfg := dryrun.Config{Objects: objs.list, Corpus: corp, Jobs: c.Int("jobs")}
	err = dryrun.Run(c.Context, cfg, print, func(e *corpus.Error) {
		if e.Shared {
			damage = append(damage, e)
			return
		}
		reportSkipped(c, []*corpus.Error{e})
	})
	reportSkipped(c, damage)
	if err != nil {
		return err
	}
	if err := p.Close(); err != nil {
		return err
	}
	if printed == 0 {
		reportHidden(c)
		return errors.New("no object is for any of the kernels")
	}
	for _, g := range p.Unmatched.Programs {
		reportUnmatched(c, "program", g, "no function or section with relocations matches")
	}
	for _, g := range p.Unmatched.Types {
		reportUnmatched(c, "type", g, "no relocation has such a local type")
	}
	for _, r := range []relo.Result{relo.Poisoned, relo.Ambiguous, relo.Error} {
		if n := p.Shown[r]; n > 0 {
			record(c, finding{Class: class(r.String()), Message: words.Plural(n, "relocation")})
		}
	}
	return findingLines(c, poisoned, ambiguous, failed)
}

// results are the values of --result.
var results = []string{"resolved", "absent", "poisoned", "ambiguous", "error"}

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
			return o, valuef("result", r, "want %s", listOr(results))
		}
		o.Filter.Results = append(o.Filter.Results, result)
	}
	o.Color = colored(c)
	return o, nil
}

// colored reports whether standard output gets color.
func colored(c *cli.Context) bool {
	when := c.String("color")
	return when == "always" || when == "auto" && isTerminal(c.App.Writer) && os.Getenv("NO_COLOR") == ""
}
