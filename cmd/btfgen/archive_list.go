// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/internal/job/bundle"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/pkg/archive"
)

func archiveListCommand() *cli.Command {
	return &cli.Command{
		Name:      "list",
		Usage:     "list the kernels of an archive",
		ArgsUsage: "ARCHIVE",
		Description: "ARCHIVE is a .btfa file. Kernels with the same layout have the same BTF. --json has the objects as well, each with\n" +
			"its machines and the first bytes of its sha256, and the hash of the relocations that the BTFs were made for.",
		Flags: []cli.Flag{
			jsonFlag("the list"),
			&cli.BoolFlag{Name: "sizes", Usage: "list what the bytes are spent on instead"},
		},
		Action: runArchiveList,
	}
}

// listing is what list --json writes.
type listing struct {
	Format int `json:"format"`
	bundle.Made
	Layouts int             `json:"layouts"`
	Kernels []listingKernel `json:"kernels"`
}

type listingKernel struct {
	Kernel string `json:"kernel"` // ID/VERSION_ID/ARCH/RELEASE
	Layout int    `json:"layout"`
}

func list(a *archive.Archive) listing {
	l := listing{Format: btfa.Version, Made: bundle.NewMade(a.Info()), Layouts: a.Layouts(), Kernels: []listingKernel{}}
	for _, k := range a.Keys() {
		layout, _ := a.Layout(k)
		l.Kernels = append(l.Kernels, listingKernel{k.String(), layout})
	}
	return l
}

func runArchiveList(c *cli.Context) error {
	a, err := openArchive(c)
	if err != nil {
		return err
	}
	if c.Bool("sizes") {
		return listSizes(c)
	}
	l := list(a)
	if c.Bool("json") {
		return writeJSON(c, l)
	}
	tw := tabwriter.NewWriter(c.App.Writer, 2, 8, 2, ' ', 0)
	escape.Fprintf(tw, "ID\tVERSION_ID\tARCH\tRELEASE\tLAYOUT\n")
	for i, k := range a.Keys() {
		escape.Fprintf(tw, "%s\t%s\t%s\t%s\t%d\n", dash(k.ID), dash(k.VersionID), dash(k.Arch), k.Release, l.Kernels[i].Layout)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	part := ""
	if l.Shard != nil {
		part = fmt.Sprintf("part %d/%d of a run: ", l.Shard.Index, l.Shard.N)
	}
	say(c, "%s: %s%s, %s, %s, by %s", c.Args().First(), part,
		words.Plural(len(l.Kernels), "kernel"), words.Plural(l.Layouts, "layout"), words.Plural(len(l.Objects), "object")+forMachines(l.Objects), l.Tool)
	return nil
}

// forMachines says how many objects are for which machines, if not all are for any.
func forMachines(objects []bundle.MadeObject) string {
	n := make(map[string]int)
	for _, o := range objects {
		n[cmp.Or(strings.Join(o.Arches, "+"), "any machine")]++
	}
	if len(objects) == n["any machine"] {
		return ""
	}
	var parts []string
	for _, m := range slices.Sorted(maps.Keys(n)) {
		parts = append(parts, fmt.Sprintf("%d for %s", n[m], m))
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// listSizes lists the streams of the archive.
func listSizes(c *cli.Context) error {
	data, err := os.ReadFile(c.Args().First())
	if err != nil {
		return err
	}
	sizes, err := archive.StreamSizes(data)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		out := make([]streamSize, len(sizes))
		for i, s := range sizes {
			out[i] = streamSize(s)
		}
		return writeJSON(c, map[string][]streamSize{"streams": out})
	}
	tw := tabwriter.NewWriter(c.App.Writer, 2, 8, 2, ' ', tabwriter.AlignRight)
	escape.Fprintf(tw, "STREAM\tPLAIN\tPACKED ALONE\t\n")
	for _, s := range sizes {
		escape.Fprintf(tw, "%s\t%s\t%s\t\n", s.Name, words.Bytes(int64(s.Plain)), words.Bytes(int64(s.Packed)))
	}
	return tw.Flush()
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// openArchive opens the native archive that is the first argument and the only
// one.
func openArchive(c *cli.Context) (*archive.Archive, error) {
	if c.NArg() != 1 {
		return nil, usagef("%s needs one ARCHIVE", c.Command.Name)
	}
	return openNative(c.Args().First())
}

// openNative opens a native archive, and tells how others become one.
func openNative(name string) (*archive.Archive, error) {
	native, err := bundle.IsNative(name)
	if err != nil {
		return nil, err
	}
	if !native {
		return nil, fmt.Errorf("%s: is not a %s archive ('btfgen archive convert' makes one of a directory or tar)", name, bundle.NativeSuffix)
	}
	return archive.OpenFile(name)
}
