package main

import (
	"bufio"
	"cmp"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/verify"
)

func verifyCommand() *cli.Command {
	return &cli.Command{
		Name:      "verify",
		Usage:     "prove that minimized BTFs give the decisions of the kernels' own",
		ArgsUsage: "ARCHIVE OBJECT...",
		Description: "ARCHIVE is what generate wrote (.btfa, a tar or a directory) or a lone .btf file. Every kernel of the sources is\n" +
			"relocated against both BTFs, under libbpf's rules and with cilium/ebpf's own code. Where these two loaders\n" +
			"disagree with each other on the full BTF is told as well. The exit status is 3 if a decision differs, if a\n" +
			"kernel is on one side only, or if a kernel or object was skipped; a disagreement alone is no finding.",
		Flags: append(sourceFlags(),
			&cli.BoolFlag{Name: "json", Usage: "write one line of JSON per finding"},
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "list every difference and disagreement"},
			jobsFlag(),
		),
		Action: runVerify,
	}
}

func runVerify(c *cli.Context) error {
	if c.NArg() < 2 {
		return usagef("verify needs ARCHIVE and at least one OBJECT")
	}
	if c.Int("jobs") < 1 {
		return usagef("--jobs %d: want at least 1", c.Int("jobs"))
	}
	if c.Bool("json") && c.Bool("verbose") {
		return usagef("--json does not go with --verbose")
	}
	stderr := c.App.ErrWriter
	objs, err := readObjects(c.Context, c.Args().Slice()[1:], stderr)
	if err != nil {
		return err
	}
	small, skipped, err := verify.Read(c.Context, c.Args().First())
	if err != nil {
		return err
	}
	corp, err := openCorpus(c, true)
	if err != nil {
		return err
	}
	cfg := verify.Config{Minimized: small, Corpus: corp, Jobs: c.Int("jobs")}
	for i, o := range objs.list {
		cfg.Objects = append(cfg.Objects, verify.Object{Object: o, Data: objs.data[i]})
	}
	bar := newProgress(stderr, len(corp.Files))
	cfg.Done = bar.set
	rep, err := verify.Run(c.Context, cfg)
	bar.finish()
	if err != nil {
		return err
	}
	rep.Skipped = append(rep.Skipped, skipped...)
	out := bufio.NewWriter(c.App.Writer)
	if c.Bool("json") {
		err = rep.JSON(out)
	} else {
		rep.Text(out, c.Bool("verbose"))
	}
	if err = cmp.Or(err, out.Flush()); err != nil {
		return err
	}
	rep.Summary(stderr)
	if rep.Findings() > 0 || objs.bad > 0 {
		return errFindings
	}
	if len(rep.Kernels) == 0 {
		return fmt.Errorf("no kernel could be compared")
	}
	return nil
}
