package main

import (
	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/bundle"
	"github.com/btfgen/btfgen/internal/foreign"
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
			"ID/VERSION_ID/ARCH/RELEASE.btf. The exit status is 3 if the archive does not have a kernel.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "all", Usage: "write all kernels"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write into the directory `DIR` (required)", TakesFile: true},
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
	_, kernels, err := bundle.ReadKernels(c.Args().First())
	if err != nil {
		return err
	}
	missing := 0
	if !all {
		kernels, missing = pick(c, kernels, keys)
		if len(kernels) == 0 {
			return errFindings
		}
	}
	out := bundle.Output{Path: dir, Format: bundle.Dir}
	if err := out.Write(archive.Info{}, kernels); err != nil {
		return err
	}
	foreign.Fprintf(c.App.ErrWriter, "%s: %s\n", dir, logtext.Plural(len(kernels), "kernel"))
	if missing > 0 {
		return errFindings
	}
	return nil
}

// pick keeps the kernels with the keys and reports those that are missing.
func pick(c *cli.Context, kernels []archive.Kernel, keys []kernel.Key) (picked []archive.Kernel, missing int) {
	have := make(map[kernel.Key]archive.Kernel, len(kernels))
	for _, k := range kernels {
		have[k.Key.Canonical()] = k
	}
	for _, key := range keys {
		k, ok := have[key.Canonical()]
		if !ok {
			foreign.Fprintf(c.App.ErrWriter, "btfgen: kernel %s is not in the archive\n", key)
			missing++
			continue
		}
		delete(have, key.Canonical())
		picked = append(picked, k)
	}
	return picked, missing
}
