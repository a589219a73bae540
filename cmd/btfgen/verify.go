// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/job/verify"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
)

func verifyCommand() *cli.Command {
	return &cli.Command{
		Name:      "verify",
		Usage:     "prove that minimized BTFs give the decisions of the kernels' own",
		ArgsUsage: "ARCHIVE OBJECT...",
		Description: "ARCHIVE is what generate wrote (.btfa, a tar or a directory) or a lone .btf file. Every kernel of the sources is\n" +
			"relocated against both BTFs, under libbpf's and aya's rules and with cilium/ebpf's own code. Where libbpf and\n" +
			"cilium/ebpf disagree on the full BTF is told as well, but is no finding. OBJECT is as for generate.",
		Flags: append(sourceFlags(),
			jsonFlag("a line for each finding, then the summary,"),
			&cli.StringFlag{Name: "loader", Usage: "compare the decisions of `LOADER` only: libbpf, ebpf-go or aya (default: all)"},
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
	loaders := map[string]string{"": "", "libbpf": verify.Libbpf, "ebpf-go": verify.Cilium, "aya": verify.Aya}
	loader, ok := loaders[c.String("loader")]
	if !ok {
		return usagef("--loader %s: want libbpf, ebpf-go or aya", c.String("loader"))
	}
	objs, err := readObjects(c, c.Args().Slice()[1:])
	if err != nil {
		return err
	}
	small, skipped, err := verify.Read(c.Context, c.Args().First())
	if err != nil {
		return err
	}
	corp, err := openCorpus(c, corpus.Options{Map: true})
	if err != nil {
		return err
	}
	small = slices.DeleteFunc(small, func(m verify.Minimized) bool { return m.Key.Known() && !corp.Selects(m.Key) })
	cfg := verify.Config{Minimized: small, Corpus: corp, Loader: loader, Jobs: c.Int("jobs")}
	for i, o := range objs.list {
		cfg.Objects = append(cfg.Objects, verify.Object{Object: o, Data: objs.data[i]})
	}
	bar := newProgress(c, len(corp.Files))
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
	tellDifferences(c, rep)
	if err := findingLines(c, different, disagreeing); err != nil {
		return err
	}
	sum := rep.Summary()
	if c.Bool("json") {
		err = escape.JSON(c.App.Writer).Encode(sum)
	}
	found(c).leftOut(c.App.ErrWriter)
	for i := range sum.Notes {
		say(c, "btfgen: %s", sum.Notes[i].Text())
	}
	say(c, "%s", sum)
	if err == nil && len(rep.Kernels) == 0 {
		return fmt.Errorf("no kernel could be compared")
	}
	return err
}

func tellDifferences(c *cli.Context, rep *verify.Report) {
	for _, k := range rep.Kernels {
		if n := len(k.Differences); n > 0 {
			record(c, finding{Class: different, Message: words.Plural(n, "difference"), Kernel: k.Name})
		}
		for _, d := range k.Disagreements {
			record(c, finding{Class: disagreeing, Message: d.Relocation, Object: d.Object, Kernel: d.Kernel})
		}
	}
	for _, k := range rep.NotMinimized {
		record(c, finding{Class: missing, Message: "no minimized BTF", Kernel: k})
	}
	for _, k := range rep.NoKernel {
		record(c, finding{Class: unmatched, Message: "minimized, but not among the kernels", Kernel: k})
	}
	for _, k := range rep.NoObject {
		note(c, finding{Class: skipped, Message: corpus.ErrNoObject.Error(), Kernel: k})
	}
	tellLeftOut(c, rep.Skipped)
}
