// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/walk"
)

func corpusCommand() *cli.Command {
	return &cli.Command{
		Name:  "corpus",
		Usage: "look into trees of kernel BTFs, and make others of them",
		Subcommands: []*cli.Command{
			corpusListCommand(),
			corpusLintCommand(),
			corpusImportCommand(),
			corpusExtractCommand(),
		},
	}
}

// corpusCommandFlags puts the options that all corpus commands have behind a
// command's own.
func corpusCommandFlags(own ...cli.Flag) []cli.Flag {
	return append(slices.Concat(own, corpusFlags()), jobsFlag())
}

// openSources opens the corpus of the arguments, or of the running kernel where
// a command allows that and there are none.
func openSources(c *cli.Context, opts corpus.Options, running bool) (*corpus.Corpus, error) {
	if c.Int("jobs") < 1 {
		return nil, usagef("--jobs %d: want at least 1", c.Int("jobs"))
	}
	sources := c.Args().Slice()
	if len(sources) == 0 {
		if !running {
			return nil, usagef("%s needs a SOURCE", c.Command.Name)
		}
		sources = []string{runningKernel}
	}
	return openWith(c, sources, opts)
}

// sweepOf returns how to read a corpus, with a progress bar. stop ends the bar
// and must be called.
func sweepOf(c *cli.Context, corp *corpus.Corpus) (cfg walk.Config, stop func()) {
	bar := newProgress(c, len(corp.Files))
	return walk.Config{Corpus: corp, Jobs: c.Int("jobs"), Progress: bar.set}, bar.finish
}
