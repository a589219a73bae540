package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/check"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/foreign"
	"github.com/btfgen/btfgen/internal/logtext"
	"github.com/btfgen/btfgen/internal/output"
	"github.com/btfgen/btfgen/internal/report"
)

func checkCommand() *cli.Command {
	return &cli.Command{
		Name:      "check",
		Usage:     "say on which kernels objects work, and why not on the others",
		ArgsUsage: "OBJECT...",
		Description: "Judges each program of each object on each kernel from the kernel's BTF: relocations that nothing resolves\n" +
			"and that the verifier can reach, helpers, kfuncs, types of maps and programs, and what programs attach to.\n" +
			"The exit status is 3 if anything fails, or a kernel or object was skipped. With --require only the kernels\n" +
			"that it selects count, with --baseline only what got worse. A selector is such as 'debian>=11,x86_64'.",
		Flags: append(sourceFlags(),
			&cli.StringFlag{Name: "format", Aliases: []string{"f"}, Usage: "write `FORMAT` text, markdown, json, junit, sarif or html", Value: "text"},
			&cli.BoolFlag{Name: "json", Usage: "same as --format json"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `FILE`", Value: "-"},
			&cli.StringSliceFlag{Name: "require", Usage: "fail if something fails on a kernel that `SELECTOR` chooses, and only then"},
			&cli.StringFlag{Name: "baseline", Usage: "compare with `FILE`, an older --json, and fail only on what got worse", TakesFile: true},
			&cli.BoolFlag{Name: "diff", Usage: "the first two arguments select a kernel each: show what differs between them"},
			&cli.StringSliceFlag{Name: "rodata-var", Usage: "the loader may set the read-only variables that match `PATTERN`"},
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "show guards, notes and all ranges of kernels"},
			&cli.StringFlag{Name: "color", Usage: "colour verdicts: `WHEN` auto (on a terminal, unless NO_COLOR is set), always or never", Value: "auto"},
			jobsFlag(),
		),
		Action: runCheck,
	}
}

// reportWriter returns what writes the report in the format asked for.
func reportWriter(c *cli.Context) (func(io.Writer, *check.Report) error, error) {
	opts := report.Options{Verbose: c.Bool("verbose")}
	color, err := colored(c)
	if err != nil {
		return nil, err
	}
	opts.Color = color && (c.String("output") == "-" || c.String("color") == "always")
	format := c.String("format")
	if c.Bool("json") {
		if c.IsSet("format") && format != "json" {
			return nil, usagef("--json does not go with --format %s", format)
		}
		format = "json"
	}
	switch format {
	case "text":
		return func(w io.Writer, r *check.Report) error { return report.Text(w, r, opts) }, nil
	case "markdown":
		return func(w io.Writer, r *check.Report) error { return report.Markdown(w, r, opts) }, nil
	case "json":
		return report.JSON, nil
	case "junit":
		return report.JUnit, nil
	case "sarif":
		return report.SARIF, nil
	case "html":
		return report.HTML, nil
	}
	return nil, usagef("--format %q: want text, markdown, json, junit, sarif or html", format)
}

// checkOptions are the options of check that need reading.
type checkOptions struct {
	write   func(io.Writer, *check.Report) error
	require []corpus.Selector
	diff    []corpus.Selector // two, or none
	old     *check.Baseline
	paths   []string
}

func readCheckOptions(c *cli.Context) (o checkOptions, err error) {
	if o.write, err = reportWriter(c); err != nil {
		return o, err
	}
	if c.Int("jobs") < 1 {
		return o, usagef("--jobs %d: want at least 1", c.Int("jobs"))
	}
	for _, g := range c.StringSlice("rodata-var") {
		if _, err := path.Match(g, ""); err != nil {
			return o, usagef("--rodata-var %q: %w", g, err)
		}
	}
	if o.require, err = corpus.ParseSelectors(c.StringSlice("require")); err != nil {
		return o, usageError{fmt.Errorf("--require: %w", err)}
	}
	o.paths = c.Args().Slice()
	if c.Bool("diff") {
		if len(o.paths) < 3 {
			return o, usagef("check --diff needs two kernels and at least one OBJECT")
		}
		if c.IsSet("format") || c.Bool("json") || c.IsSet("baseline") || c.IsSet("require") {
			return o, usagef("--diff does not go with --format, --json, --baseline or --require")
		}
		if o.diff, err = corpus.ParseSelectors(o.paths[:2]); err != nil {
			return o, usageError{fmt.Errorf("--diff: %w", err)}
		}
		o.paths = o.paths[2:]
	}
	if len(o.paths) == 0 {
		return o, usagef("no BPF object given")
	}
	if f := c.String("baseline"); f != "" {
		if o.old, err = check.ReadBaseline(c.Context, f); err != nil {
			return o, usageError{err}
		}
	}
	return o, nil
}

func runCheck(c *cli.Context) error {
	o, err := readCheckOptions(c)
	if err != nil {
		return err
	}
	stderr := c.App.ErrWriter
	objs, bad, err := readPrograms(c.Context, o.paths, stderr)
	if err != nil {
		return err
	}
	corp, err := openCorpus(c, true)
	if err != nil {
		return err
	}
	in := inputsOf(append(c.StringSlice("btf"), o.paths...)...)
	in.addCorpus(corp, c.String("output"))
	if err := in.refuse(c.String("output")); err != nil {
		return err
	}
	bar := newProgress(stderr, len(corp.Files))
	rep, err := check.Run(c.Context, check.Config{
		Objects: objs, Corpus: corp, Jobs: c.Int("jobs"), Done: bar.set,
		Rodata: c.StringSlice("rodata-var"),
	})
	bar.finish()
	if err != nil {
		return err
	}
	for _, s := range rep.Skipped {
		foreign.Fprintf(stderr, "btfgen: skipped: %s\n", s)
	}
	if len(rep.Kernels) == 0 {
		return errors.New("no kernel could be checked")
	}
	if o.diff != nil {
		return checkDiff(c, rep, o.diff)
	}
	if err := writeReport(c, rep, o.write); err != nil {
		return err
	}
	failed, err := checkVerdict(stderr, rep, &o)
	if err != nil {
		return err
	}
	if failed || bad > 0 || len(rep.Skipped) > 0 {
		return errFindings
	}
	return nil
}

func writeReport(c *cli.Context, rep *check.Report, write func(io.Writer, *check.Report) error) error {
	if out := c.String("output"); out != "-" {
		return output.WriteFile(out, func(w io.Writer) error { return write(w, rep) })
	}
	return write(c.App.Writer, rep)
}

// checkVerdict says whether the report is a failure, given what is required
// and what it was before.
func checkVerdict(stderr io.Writer, rep *check.Report, o *checkOptions) (failed bool, err error) {
	if o.old == nil && len(o.require) == 0 {
		return rep.Worst(nil) == check.Fails, nil
	}
	for _, s := range o.require {
		n := 0
		worst := rep.Worst(func(k int) bool {
			ok := s.Match(rep.Kernels[k].Key())
			if ok {
				n++
			}
			return ok
		})
		switch {
		case n == 0:
			return true, fmt.Errorf("--require %s: no kernel is selected", s)
		case worst == check.Fails:
			foreign.Fprintf(stderr, "btfgen: --require %s: not met\n", s)
			failed = true
		}
	}
	if o.old == nil {
		return failed, nil
	}
	for _, ch := range rep.Compare(o.old) {
		word := "better"
		if ch.Worse() {
			word, failed = "worse", true
		} else if ch.New > ch.Old {
			continue
		}
		foreign.Fprintf(stderr, "btfgen: %s: %s: %s on %s: %s, was %s\n", word, ch.Object, ch.Program, ch.Kernel, ch.New, ch.Old)
	}
	return failed, nil
}

// checkDiff shows what differs between two kernels.
func checkDiff(c *cli.Context, rep *check.Report, sel []corpus.Selector) error {
	var k [2]int
	for i, s := range sel {
		var found []int
		for n := range rep.Kernels {
			if s.Match(rep.Kernels[n].Key()) || rep.Kernels[n].Name == s.String() {
				found = append(found, n)
			}
		}
		if len(found) != 1 {
			return fmt.Errorf("--diff %s: selects %s, want one", s, logtext.Plural(len(found), "kernel"))
		}
		k[i] = found[0]
	}
	n := report.Diff(c.App.Writer, rep, k[0], k[1])
	if n > 0 {
		return errFindings
	}
	return nil
}

// readPrograms is readObjects for objects with programs, which need no
// relocations.
func readPrograms(ctx context.Context, paths []string, stderr io.Writer) (list []*check.Object, bad int, err error) {
	parse := func(name string, data []byte) (*check.Object, error) { return check.Parse(ctx, name, data) }
	bad, err = eachObject(ctx, paths, stderr, parse, func(o *check.Object, _ []byte) { list = append(list, o) })
	if err != nil {
		return nil, bad, err
	}
	if len(list) == 0 {
		return nil, bad, errors.New("no object with programs")
	}
	return list, bad, nil
}
