// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/job/bundle"
	"github.com/btfgen/btfgen/internal/job/store"
)

func corpusExtractCommand() *cli.Command {
	return &cli.Command{
		Name:      "extract",
		Usage:     "write the BTF of kernels as raw files",
		ArgsUsage: "[SOURCE...]",
		Description: "SOURCE is a file or a tree (default: the running kernel). OUT is a directory, with a tree of\n" +
			"ID/VERSION_ID/ARCH/RELEASE.btf, if it ends in / or is one already, or if there are several kernels; RELEASE.config and\n" +
			"RELEASE.kallsyms beside it are the kernel's configuration and symbols, where the source has them. Else OUT is the file\n" +
			"for the BTF of the only kernel, - being standard output.",
		Flags: corpusCommandFlags(
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `OUT` (required)", TakesFile: true},
			&cli.BoolFlag{Name: "modules", Usage: "write modules too, as RELEASE/MODULE.btf beside their kernel"},
			jsonFlag("the summary and findings"),
		),
		Action: runCorpusExtract,
	}
}

func runCorpusExtract(c *cli.Context) error {
	out := c.String("output")
	if out == "" {
		return usagef("extract needs -o OUT")
	}
	if out == "-" && isTerminal(c.App.Writer) {
		return usagef("standard output is a terminal, and BTF is binary")
	}
	opts, err := corpusOptions(c)
	if err != nil {
		return err
	}
	if !c.Bool("modules") {
		opts.Modules = store.NoModules
	}
	opts.Extras = out != "-"
	if err := distinctDirs(out, c.Args().Slice()); err != nil {
		return err
	}
	corp, err := openSources(c, opts, true)
	if err != nil {
		return err
	}
	tree := isDir(out) || len(corp.Files) > 1 && out != "-"
	switch {
	case !tree && c.Bool("modules"):
		return usagef("--modules needs a directory: -o %s/", out)
	case !tree:
		in := make(inputs)
		in.addCorpus(corp, out)
		if err := in.refuse(out); err != nil {
			return err
		}
		return extractOne(c, corp, out)
	}
	if f, err := bundle.FormatOf(out); err != nil || f != bundle.Dir {
		return usagef("-o %s: several kernels go into a directory", out)
	}
	cfg, stop := sweepOf(c, corp)
	res, err := store.Extract(c.Context, cfg, out)
	stop()
	if err != nil {
		return err
	}
	return reportStored(c, out, res)
}

// isDir says whether an output is meant to be a directory.
func isDir(path string) bool {
	fi, err := os.Stat(path)
	return strings.HasSuffix(path, "/") || err == nil && fi.IsDir()
}

func extractOne(c *cli.Context, corp *corpus.Corpus, out string) error {
	cfg, stop := sweepOf(c, corp)
	limitMemory(1)
	k, skipped, err := store.One(c.Context, cfg)
	stop()
	if errors.Is(err, store.ErrSeveral) {
		return usagef("-o %s: %w (a directory takes all, --select chooses)", out, err)
	}
	if err != nil {
		return err
	}
	tellLeftOut(c, skipped)
	err = writeBy(c, out, func(w io.Writer) error {
		_, err := w.Write(k.BTF)
		return err
	})
	if err != nil {
		return err
	}
	return document(c, storedJSON{Output: out, Kernels: 1, Written: 1, Bytes: int64(len(k.BTF)), allFindings: findingsOf(c)})
}
