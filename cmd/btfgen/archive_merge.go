// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/bundle"
	"github.com/btfgen/btfgen/internal/logtext"
	"github.com/btfgen/btfgen/internal/output"
)

func archiveMergeCommand() *cli.Command {
	return &cli.Command{
		Name:      "merge",
		Usage:     "make one archive of several",
		ArgsUsage: "ARCHIVE...",
		Description: "Archives of different machines go together. Those that have kernels of one machine but were made for different\n" +
			"relocations are refused, because a kernel would have BTF for the objects of one of them only. Merging all shards of\n" +
			"a run gives the bytes of one run; one that is missing, there twice or of another run is an error.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `OUT` (required)"},
			layoutFlag(),
			jsonFlag("the summary and findings"),
			&cli.BoolFlag{Name: "mixed", Usage: "merge archives of different relocations all the same"},
		},
		Action: runArchiveMerge,
	}
}

func runArchiveMerge(c *cli.Context) error {
	out, err := parseOutput(c)
	if err != nil {
		return err
	}
	names := c.Args().Slice()
	if len(names) == 0 {
		return usagef("merge needs at least one ARCHIVE")
	}
	unlock, err := holdInput(c, out.Path, names...)
	if err != nil {
		return err
	}
	defer unlock()
	if err := out.Check(c.Context); err != nil {
		return err
	}
	for _, name := range names {
		if err := tellUnlisted(c, name); err != nil {
			return err
		}
	}
	info, kernels, err := bundle.Merge(c.Context, names, c.Bool("mixed"))
	if errors.Is(err, bundle.ErrOther) {
		return fmt.Errorf("%w (--mixed merges them all the same)", err)
	}
	if err != nil {
		return err
	}
	info.Tool = tool()
	if err := writeKernels(c, &out, info, kernels); err != nil {
		return err
	}
	say(c, "%s: %s of %s", out.Path, logtext.Plural(len(kernels), "kernel"), logtext.Plural(len(names), "archive"))
	return document(c, archiveJSON{out.Path, len(kernels), findingsOf(c)})
}

// archiveJSON is what --json writes of an archive that was written.
type archiveJSON struct {
	Output  string `json:"output"`
	Kernels int    `json:"kernels"`
	allFindings
}

func archiveConvertCommand() *cli.Command {
	return &cli.Command{
		Name:      "convert",
		Usage:     "write an archive in another form",
		ArgsUsage: "ARCHIVE",
		Description: "ARCHIVE and OUT are .btfa, .tar.gz, .tar.xz, .tar.zst or a directory. What an archive notes of its making (objects, and\n" +
			"the hash of their relocations) a directory has in " + output.ListName + "; a .tar loses it.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `OUT` (required)"},
			layoutFlag(),
			jsonFlag("the summary and findings"),
		},
		Action: runArchiveConvert,
	}
}

func runArchiveConvert(c *cli.Context) error {
	out, err := parseOutput(c)
	if err != nil {
		return err
	}
	if c.NArg() != 1 {
		return usagef("convert needs one ARCHIVE")
	}
	if err := inputsOf(c.Args().Slice()...).refuse(out.Path); err != nil {
		return err
	}
	unlock, err := holdInput(c, out.Path, c.Args().First())
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
	info.Tool = tool()
	if err := writeKernels(c, &out, info, kernels); err != nil {
		return err
	}
	say(c, "%s: %s", out.Path, logtext.Plural(len(kernels), "kernel"))
	return document(c, archiveJSON{out.Path, len(kernels), findingsOf(c)})
}
