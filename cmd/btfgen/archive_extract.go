// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/bundle"
	"github.com/btfgen/btfgen/internal/logtext"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

func archiveExtractCommand() *cli.Command {
	return &cli.Command{
		Name:      "extract",
		Usage:     "write BTFs of an archive as files",
		ArgsUsage: "ARCHIVE [KEY...]",
		Description: "KEY is ID/VERSION_ID/ARCH/RELEASE, with - for a missing part. The files have BTFHub's layout\n" +
			"ID/VERSION_ID/ARCH/RELEASE.btf; those of an earlier command in DIR are removed.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "all", Usage: "write all kernels"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write into the directory `DIR` (required)", TakesFile: true},
			jsonFlag("the summary and findings"),
		},
		Action: runArchiveExtract,
	}
}

func runArchiveExtract(c *cli.Context) error {
	dir, all := c.String("output"), c.Bool("all")
	switch {
	case c.NArg() == 0:
		return usagef("extract needs an ARCHIVE")
	case dir == "" || dir == "-":
		return usagef("extract needs -o DIR")
	case all && c.NArg() > 1:
		return usagef("--all does not go with a KEY")
	case !all && c.NArg() == 1:
		return usagef("extract needs a KEY, or --all")
	}
	var keys []kernel.Key
	for _, s := range c.Args().Slice()[1:] {
		k, err := kernel.ParseKey(s)
		if err != nil {
			return usageError{err}
		}
		keys = append(keys, k)
	}
	out := bundle.Output{Path: dir, Format: bundle.Dir}
	unlock, err := holdInput(c, dir, c.Args().First())
	if err != nil {
		return err
	}
	defer unlock()
	if err := out.Check(c.Context); err != nil {
		return err
	}
	info, kernels, err := readKernels(c, c.Args().First())
	if err != nil {
		return err
	}
	if !all {
		info.Shard = archive.Shard{} // of which it has not all
		if kernels = pick(c, kernels, keys); len(kernels) == 0 {
			return document(c, archiveJSON{dir, 0, findingsOf(c)})
		}
	}
	info.Tool = tool()
	if err := writeKernels(c, &out, info, kernels); err != nil {
		return err
	}
	say(c, "%s: %s", dir, logtext.Plural(len(kernels), "kernel"))
	return document(c, archiveJSON{dir, len(kernels), findingsOf(c)})
}

// pick keeps the kernels with the keys and reports those that are missing.
func pick(c *cli.Context, kernels []archive.Kernel, keys []kernel.Key) (picked []archive.Kernel) {
	have := make(map[kernel.Key]archive.Kernel, len(kernels))
	for _, k := range kernels {
		have[k.Key.Canonical()] = k
	}
	for _, key := range keys {
		k, ok := have[key.Canonical()]
		if !ok {
			tellOf(c, finding{Class: missing, Message: "not in the archive", Kernel: key.String()})
			continue
		}
		delete(have, key.Canonical())
		picked = append(picked, k)
	}
	return picked
}
