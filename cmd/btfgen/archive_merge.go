package main

import (
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/bundle"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
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
	info := archive.Info{Tool: tool()}
	var kernels []archive.Kernel
	for i, name := range names {
		in, ks, err := bundle.ReadKernels(name)
		if err != nil {
			return err
		}
		switch {
		case i == 0:
			info.Relocations = in.Relocations
		case in.Relocations == info.Relocations:
		case !c.Bool("mixed"):
			return fmt.Errorf("%s: was made for other relocations than %s (--mixed merges them all the same)", name, names[0])
		default:
			info.Relocations = [len(info.Relocations)]byte{}
		}
		info.Objects = append(info.Objects, in.Objects...)
		kernels = append(kernels, ks...)
	}
	kernels, err = distinct(kernels)
	if err != nil {
		return err
	}
	if err := out.Write(info, kernels); err != nil {
		return err
	}
	fmt.Fprintf(c.App.ErrWriter, "%s: %s of %s\n", out.Path, plural(len(kernels), "kernel"), plural(len(names), "archive"))
	return nil
}

// distinct drops kernels that are there again with the same BTF.
func distinct(kernels []archive.Kernel) ([]archive.Kernel, error) {
	seen := make(map[kernel.Key]archive.Kernel, len(kernels))
	var out []archive.Kernel
	for _, k := range kernels {
		c := k.Key.Canonical()
		old, ok := seen[c]
		if !ok {
			seen[c] = k
			out = append(out, k)
		} else if !slices.Equal(old.BTF, k.BTF) {
			return nil, fmt.Errorf("kernel %s: the archives have two different BTFs", k.Key)
		}
	}
	return out, nil
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
	fmt.Fprintf(c.App.ErrWriter, "%s: %s\n", out.Path, plural(len(kernels), "kernel"))
	return nil
}
