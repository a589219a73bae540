package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/bundle"
	"github.com/btfgen/btfgen/internal/foreign"
	"github.com/btfgen/btfgen/internal/logtext"
)

func archiveMergeCommand() *cli.Command {
	return &cli.Command{
		Name:      "merge",
		Usage:     "make one archive of several",
		ArgsUsage: "ARCHIVE...",
		Description: "Archives of different relocations are refused, because a kernel would have BTF for the objects of one of them only.\n" +
			"Merging the shards of a run gives the bytes of one run.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `OUT` (required)"},
			layoutFlag(),
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
	info, kernels, err := bundle.Merge(names, c.Bool("mixed"))
	if errors.Is(err, bundle.ErrOther) {
		return fmt.Errorf("%w (--mixed merges them all the same)", err)
	}
	if err != nil {
		return err
	}
	info.Tool = tool()
	if err := out.Write(info, kernels); err != nil {
		return err
	}
	foreign.Fprintf(c.App.ErrWriter, "%s: %s of %s\n", out.Path, logtext.Plural(len(kernels), "kernel"), logtext.Plural(len(names), "archive"))
	return nil
}

func archiveConvertCommand() *cli.Command {
	return &cli.Command{
		Name:      "convert",
		Usage:     "write an archive in another form",
		ArgsUsage: "ARCHIVE",
		Description: "ARCHIVE and OUT are .btfa, .tar.gz, .tar.xz, .tar.zst or a directory. What only a .btfa has is lost in the others:\n" +
			"objects, and the hash of their relocations.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `OUT` (required)"},
			layoutFlag(),
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
	info, kernels, err := bundle.ReadKernels(c.Args().First())
	if err != nil {
		return err
	}
	info.Tool = tool()
	if err := out.Write(info, kernels); err != nil {
		return err
	}
	foreign.Fprintf(c.App.ErrWriter, "%s: %s\n", out.Path, logtext.Plural(len(kernels), "kernel"))
	return nil
}
