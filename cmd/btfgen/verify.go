// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/job/bundle"
	"github.com/btfgen/btfgen/internal/job/verify"
	"github.com/btfgen/btfgen/internal/report"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/pkg/archive"
)

func runVerify(c *cli.Context) error {
	if c.NArg() < 2 {
		return usagef("verify needs ARCHIVE and at least one OBJECT")
	}
	growSlowly()
	loaders := map[string]string{"libbpf": verify.Libbpf, "ebpf-go": verify.Cilium, "aya": verify.Aya}
	objs, err := readObjects(c, c.Args().Slice()[1:])
	if err != nil {
		return err
	}
	if c.Bool("covers") {
		return runCovers(c, objs)
	}
	info, err := bundle.ReadInfo(c.Context, c.Args().First())
	if err != nil {
		return err
	}
	small, skipped, err := readMinimized(c)
	if err != nil {
		return err
	}
	corp, err := openCorpus(c, corpus.Options{Map: true})
	if err != nil {
		return err
	}
	small = slices.DeleteFunc(small, func(m verify.Minimized) bool { return m.Key.Known() && !corp.Selects(m.Key) })
	objs.announce(c)
	walk, stop := walkConfig(c, corp)
	cfg := verify.Config{
		Minimized: small, Corpus: corp, Loader: loaders[c.String("loader")], Jobs: walk.Jobs, Done: walk.Progress,
	}
	for i, o := range objs.list {
		cfg.Objects = append(cfg.Objects, verify.Object{Object: o, Data: objs.data[i]})
	}
	rep, err := verify.Run(c.Context, cfg)
	stop()
	if err != nil {
		return err
	}
	rep.Skipped = append(rep.Skipped, skipped...)
	for i := range rep.Notes {
		if n := &rep.Notes[i]; n.Unread.Code != "" {
			n.Reason = report.Reason(&n.Unread)
		}
	}
	reportOthers(c, &info, objs)
	out := bufio.NewWriter(c.App.Writer)
	if c.Bool("json") {
		err = rep.JSON(out)
	} else {
		rep.Text(out, c.Bool("verbose"))
	}
	if err = cmp.Or(err, out.Flush()); err != nil {
		return err
	}
	recordVerified(c, rep)
	if err := findingLines(c, different); err != nil {
		return err
	}
	sum := rep.Summary()
	if c.Bool("json") {
		err = escape.JSON(c.App.Writer).Encode(sum)
	}
	for i := range sum.Notes {
		if n := &sum.Notes[i]; n.Reason == "" {
			infof(c, "btfgen: %s", n.Text())
		}
	}
	infof(c, "%s", sum)
	if err == nil && len(rep.Kernels) == 0 {
		return fmt.Errorf("no kernel could be compared")
	}
	return err
}

// readMinimized reads the minimized BTFs of the first argument, and returns what it skipped. It fails if there are none.
func readMinimized(c *cli.Context) (small []verify.Minimized, skipped []*corpus.Error, err error) {
	small, skipped, err = verify.Read(c.Context, c.Args().First())
	switch {
	case err != nil || len(small) > 0:
	case len(skipped) > 0:
		err = skipped[0]
	default:
		err = fmt.Errorf("%s: no minimized BTF to compare", c.Args().First())
	}
	return small, skipped, err
}

// recordVerified records the findings of a report.
func recordVerified(c *cli.Context, rep *verify.Report) {
	for _, k := range rep.Kernels {
		if n := len(k.Differences); n > 0 {
			record(c, finding{Class: different, Message: words.Plural(n, "difference"), Kernel: k.Name})
		}
	}
	for _, k := range rep.NotMinimized {
		record(c, finding{Class: missing, Message: "no minimized BTF", Kernel: k})
	}
	for _, k := range rep.NoKernel {
		record(c, finding{Class: unmatched, Message: "minimized, but not among the kernels", Kernel: k})
	}
	for _, k := range rep.NoObject {
		reportIfVerbose(c, finding{Class: skipped, Message: corpus.ErrNoObject.Error(), Kernel: k})
	}
	for i := range rep.Notes {
		if n := &rep.Notes[i]; n.Reason != "" {
			reportFinding(c, finding{Class: uncertain, Object: n.Object, Code: string(n.Unread.Code), Message: n.Why()})
		}
	}
	reportSkipped(c, rep.Skipped)
}

// coverage is the last line of verify --covers --json.
type coverage struct {
	Objects int `json:"objects"`
	Covered int `json:"covered"`
}

// runCovers checks that an archive was made for the relocations of objects.
func runCovers(c *cli.Context, objs *objects[*core.Object]) error {
	name := c.Args().First()
	info, err := bundle.ReadInfo(c.Context, name)
	if err != nil {
		return err
	}
	if len(info.Objects) == 0 {
		if _, _, err := readMinimized(c); err != nil {
			return err
		}
		return fmt.Errorf("%s: does not list the objects that it was made for", name)
	}
	objs.announce(c)
	sum := coverage{Objects: len(objs.list)}
	for i, o := range objs.list {
		err := info.Covers(archive.NewObject(o.Name(), objs.data[i], o.Machines()...))
		if err == nil {
			sum.Covered++
			continue
		}
		reportFinding(c, finding{Class: unmatched, Message: err.Error(), Object: o.Name()})
	}
	if err := findingLines(c); err != nil {
		return err
	}
	if c.Bool("json") {
		return escape.JSON(c.App.Writer).Encode(sum)
	}
	infof(c, "%s: covers %d of %s", name, sum.Covered, words.Plural(sum.Objects, "object"))
	return nil
}

// reportOthers prints which objects an archive was not made for, if it lists its objects.
func reportOthers(c *cli.Context, info *archive.Info, objs *objects[*core.Object]) {
	for i, o := range objs.list {
		if len(info.Objects) == 0 {
			return
		}
		if err := info.Covers(archive.NewObject(o.Name(), objs.data[i], o.Machines()...)); err != nil {
			infof(c, "btfgen: %v", err)
		}
	}
}
