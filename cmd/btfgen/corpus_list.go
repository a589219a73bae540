// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/job/lint"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
)

func corpusListCommand() *cli.Command {
	return &cli.Command{
		Name:      "list",
		Usage:     "list the kernels of a corpus",
		ArgsUsage: "[SOURCE...]",
		Description: "SOURCE is a file or a tree (default: the running kernel). Without --long nothing is decompressed, and a package\n" +
			"or an archive with several kernels is one row. A kernel whose key is not known has dashes. --json writes a line\n" +
			"for each kernel, for 'corpus lint --earlier'.",
		Flags: corpusCommandFlags(
			&cli.BoolFlag{Name: "long", Aliases: []string{"l"}, Usage: "read the kernels: show bytes of BTF, types, byte order, bytes of a pointer, modules, configuration and symbols, and what made the BTF of DWARF"},
			&cli.BoolFlag{Name: "sizes", Usage: "list what the bytes of corpora in one file are spent on instead"},
			jsonFlag("a line for each kernel, then for each finding,"),
		),
		Action: runCorpusList,
	}
}

func runCorpusList(c *cli.Context) error {
	opts, err := corpusOptions(c)
	if err != nil {
		return err
	}
	opts.Extras = c.Bool("long")
	corp, err := openSources(c, opts, true)
	if err != nil {
		return err
	}
	if c.Bool("sizes") {
		return listCorpusSizes(c, corp)
	}
	list, skipped := lint.List(corp), corp.Skipped
	if c.Bool("long") {
		cfg, stop := sweepOf(c, corp)
		list, skipped, err = lint.Read(c.Context, cfg)
		if stop(); err != nil {
			return err
		}
	}
	tellLeftOut(c, skipped)
	if len(list) == 0 {
		return errors.New("no kernel could be read")
	}
	slices.SortStableFunc(list, func(a, b lint.Entry) int { return a.Key().Compare(b.Key()) })
	write := writeTable
	if c.Bool("json") {
		write = writeLines
	}
	if err := write(c.App.Writer, list, c.Bool("long")); err != nil {
		return err
	}
	return findingLines(c)
}

func writeLines(w io.Writer, list []lint.Entry, _ bool) error {
	enc := escape.JSON(w)
	for _, e := range list {
		if err := enc.Encode(e); err != nil {
			return err
		}
	}
	return nil
}

func writeTable(w io.Writer, list []lint.Entry, long bool) error {
	tw := tabwriter.NewWriter(w, 2, 8, 2, ' ', 0)
	head := escape.Own("KERNEL\tON DISK\t")
	any := func(f func(d *lint.Details) bool) bool {
		return slices.ContainsFunc(list, func(e lint.Entry) bool { return e.Details != nil && f(e.Details) })
	}
	extras := any(func(d *lint.Details) bool { return d.ConfigBytes+d.SymbolBytes > 0 })
	made := any(func(d *lint.Details) bool { return d.Maker != "" })
	if long {
		head += "BTF\tTYPES\tBYTE ORDER\tPOINTER\tMODULES\t"
	}
	if extras {
		head += "CONFIGURATION\tSYMBOLS\t"
	}
	if made {
		head += "MADE OF DWARF BY\t"
	}
	escape.Fprintf(tw, "%s\n", head+"PATH")
	for _, e := range list {
		escape.Fprintf(tw, "%s\t%s\t", e.Key(), words.Bytes(e.Disk))
		if long {
			escape.Fprintf(tw, "%s\t%d\t%s\t%d\t%d\t", words.Bytes(e.Bytes), e.Types, e.ByteOrder, e.Pointer, e.Modules)
		}
		if extras {
			escape.Fprintf(tw, "%s\t%s\t", sizeOrDash(e.ConfigBytes), sizeOrDash(e.SymbolBytes))
		}
		if made {
			escape.Fprintf(tw, "%s\t", dash(e.Maker))
		}
		escape.Fprintf(tw, "%s", e.Path)
		if long && e.AsBytes {
			escape.Fprintf(tw, " (kept as bytes)")
		}
		escape.Fprintf(tw, "\n")
	}
	return tw.Flush()
}

// sizeOrDash is a size of what may not be there.
func sizeOrDash(n int64) string {
	if n == 0 {
		return "-"
	}
	return words.Bytes(n)
}
