// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/job/bundle"
	"github.com/btfgen/btfgen/internal/job/store"
)

func runCorpusExtract(c *cli.Context) error {
	out := c.String("output")
	if out == "" {
		return usagef("extract needs -o OUT")
	}
	if err := refuseTerminal(c, out); err != nil {
		return err
	}
	opts := corpus.Options{Extras: out != "-"}
	if err := refuseSource(c, out); err != nil {
		return err
	}
	corp, err := openCorpus(c, opts)
	if err != nil {
		return err
	}
	fi, err := os.Stat(out)
	isDir := strings.HasSuffix(out, "/") || err == nil && fi.IsDir()
	if !isDir && (len(corp.Files) < 2 || out == "-") {
		if c.String("modules") != "none" {
			return optionf("modules", "needs a directory: -o %s/", out)
		}
		return extractOne(c, corp, out)
	}
	if f, err := bundle.FormatOf(out); err != nil || f != bundle.Dir {
		return valuef("output", out, "several kernels need a directory: a name that ends with / or has no suffix")
	}
	cfg, stop := walkConfig(c, corp)
	res, err := store.Extract(c.Context, cfg, out)
	stop()
	if err != nil {
		return err
	}
	return reportStored(c, out, res)
}

func extractOne(c *cli.Context, corp *corpus.Corpus, out string) error {
	in := make(inputs)
	in.addCorpus(corp, out)
	if err := in.refuse(out); err != nil {
		return err
	}
	cfg, stop := walkConfig(c, corp)
	limitMemory(1)
	k, skipped, err := store.One(c.Context, cfg)
	stop()
	if errors.Is(err, store.ErrSeveral) {
		return valuef("output", out, "%w (use a directory, or --select)", err)
	}
	if err != nil {
		return err
	}
	reportSkipped(c, skipped)
	if err := writeOut(c, out, k.BTF); err != nil {
		return err
	}
	return document(c, storedJSON{out, &store.Result{Kernels: 1, Written: 1, Bytes: int64(len(k.BTF))}, findingsOf(c)})
}
