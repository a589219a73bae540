// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/job/bundle"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// merged is the document of archive merge.
type merged struct {
	Output  string `json:"output"`
	Kernels int    `json:"kernels"`
	allFindings
}

func runArchiveMerge(c *cli.Context) error {
	out, err := parseOutput(c)
	if err != nil {
		return err
	}
	if c.NArg() == 0 {
		return usagef("merge needs at least one ARCHIVE")
	}
	var opts corpus.Options
	if err := selection(c, &opts); err != nil {
		return err
	}
	unlock, err := holdOutput(c, &out)
	if err != nil {
		return err
	}
	defer unlock()
	if err := out.Check(c.Context); err != nil {
		return err
	}
	info, kernels, err := bundle.Merge(c.Context, c.Args().Slice(), c.Bool("mixed"))
	if errors.Is(err, bundle.ErrOther) {
		err = fmt.Errorf("%w (--mixed allows this)", err)
	}
	if err != nil {
		return err
	}
	selects := len(opts.Select)+len(opts.Exclude) > 0
	if selects {
		info.Shard = archive.Shard{} // which would promise all of its kernels
		var keys []kernel.Key
		for _, k := range kernels {
			keys = append(keys, k.Key.Canonical())
		}
		reportSelection(c, opts.Selection(slices.Values(keys)))
		kernels = slices.DeleteFunc(kernels, func(k archive.Kernel) bool { return !opts.Selects(k.Key) })
	}
	if len(kernels) > 0 || !selects {
		info.Tool = tool()
		if _, err := writeKernels(c, &out, info, kernels); err != nil {
			return err
		}
		infof(c, "%s: %s of %s", out.Path, words.Plural(len(kernels), "kernel"), words.Plural(c.NArg(), "archive"))
	}
	return document(c, merged{out.Path, len(kernels), findingsOf(c)})
}
