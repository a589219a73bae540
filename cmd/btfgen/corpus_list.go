// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/job/lint"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
)

func corpusListCommand() *cli.Command {
	return &cli.Command{
		Name:      "list",
		Usage:     "list the kernels of a corpus",
		ArgsUsage: "[SOURCE...]",
		Description: "SOURCE is a file or tree (default: the running kernel). Without --long nothing is decompressed, and a package or\n" +
			"archive with several kernels is one row. Kernels without a key have dashes.",
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "long", Aliases: []string{"l"}, Usage: "read the kernels and show sizes, types, byte order, modules etc."},
			jsonFlag("kernels, then findings, one per line,"),
			jobsFlag(),
		}, corpusFlags()...),
		UsageText: "    btfgen corpus list kernels/ --select debian",
		Action:    runCorpusList,
	}
}

func runCorpusList(c *cli.Context) error {
	corp, err := openCorpus(c, corpus.Options{Extras: c.Bool("long")})
	if err != nil {
		return err
	}
	list, skipped := lint.List(corp), corp.Skipped
	if c.Bool("long") {
		cfg, stop := walkConfig(c, corp)
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
	if !c.Bool("json") {
		return printKernels(c.App.Writer, list, c.Bool("long"))
	}
	enc := escape.JSON(c.App.Writer)
	for _, e := range list {
		if err := enc.Encode(e); err != nil {
			return err
		}
	}
	return findingLines(c)
}

// printKernels prints a table. Columns that are empty for all kernels are left out.
func printKernels(w io.Writer, list []lint.Entry, long bool) error {
	some := func(f func(d *lint.Details) bool) bool {
		return slices.ContainsFunc(list, func(e lint.Entry) bool { return e.Details != nil && f(e.Details) })
	}
	extras := some(func(d *lint.Details) bool { return d.ConfigBytes+d.SymbolBytes > 0 })
	made := some(func(d *lint.Details) bool { return d.Maker != "" })
	size := func(n int64) string {
		if n == 0 {
			return "-"
		}
		return words.Bytes(n)
	}
	tw := tabwriter.NewWriter(w, 2, 8, 2, ' ', 0)
	head := escape.Own("KERNEL\tON DISK\t")
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
			escape.Fprintf(tw, "%s\t%s\t", size(e.ConfigBytes), size(e.SymbolBytes))
		}
		if made {
			escape.Fprintf(tw, "%s\t", cmp.Or(e.Maker, "-"))
		}
		escape.Fprintf(tw, "%s", e.Path)
		if long && e.AsBytes {
			escape.Fprintf(tw, " (kept as bytes)")
		}
		escape.Fprintf(tw, "\n")
	}
	return tw.Flush()
}
