package main

import (
	"encoding/hex"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/archiver"
	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/internal/bundle"
	"github.com/btfgen/btfgen/internal/foreign"
	"github.com/btfgen/btfgen/internal/logtext"
	"github.com/btfgen/btfgen/pkg/archive"
)

func archiveListCommand() *cli.Command {
	return &cli.Command{
		Name:      "list",
		Usage:     "list the kernels of an archive",
		ArgsUsage: "ARCHIVE",
		Description: "ARCHIVE is a .btfa file. Kernels with the same layout have the same BTF. --json has the objects as well, each with\n" +
			"the first bytes of its sha256, and the hash of the relocations that the BTFs were made for.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "json", Usage: "write JSON"},
			&cli.BoolFlag{Name: "sizes", Usage: "list what the bytes are spent on instead"},
		},
		Action: runArchiveList,
	}
}

// listing is what list --json writes. Fields are only ever added.
type listing struct {
	Format      int             `json:"format"`
	Tool        string          `json:"tool"`
	Relocations string          `json:"relocations"`
	Objects     []listingObject `json:"objects"`
	Layouts     int             `json:"layouts"`
	Kernels     []listingKernel `json:"kernels"`
}

type listingObject struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"` // its first digits
}

type listingKernel struct {
	ID        string `json:"id"`
	VersionID string `json:"version_id"`
	Arch      string `json:"arch"`
	Release   string `json:"release"`
	Layout    int    `json:"layout"`
}

func list(a *archive.Archive) listing {
	info := a.Info()
	l := listing{
		Format: btfa.Version, Tool: info.Tool, Relocations: hex.EncodeToString(info.Relocations[:]),
		Objects: []listingObject{}, Layouts: a.Layouts(), Kernels: []listingKernel{},
	}
	for _, o := range info.Objects {
		l.Objects = append(l.Objects, listingObject{o.Name, hex.EncodeToString(o.Sum)})
	}
	for _, k := range a.Keys() {
		layout, _ := a.Layout(k)
		l.Kernels = append(l.Kernels, listingKernel{k.ID, k.VersionID, k.Arch, k.Release, layout})
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
	foreign.Fprintf(tw, "ID\tVERSION_ID\tARCH\tRELEASE\tLAYOUT\n")
	for _, k := range l.Kernels {
		foreign.Fprintf(tw, "%s\t%s\t%s\t%s\t%d\n", dash(k.ID), dash(k.VersionID), dash(k.Arch), k.Release, k.Layout)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	foreign.Fprintf(c.App.ErrWriter, "%s: %s, %s, %s, by %s\n", c.Args().First(),
		logtext.Plural(len(l.Kernels), "kernel"), logtext.Plural(l.Layouts, "layout"), logtext.Plural(len(l.Objects), "object"), l.Tool)
	return nil
}

// listSizes lists the streams of the archive.
func listSizes(c *cli.Context) error {
	data, err := os.ReadFile(c.Args().First())
	if err != nil {
		return err
	}
	sizes, err := archiver.StreamSizes(data)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		type stream struct {
			Name   string `json:"name"`
			Plain  int    `json:"plain"`
			Packed int    `json:"packed"`
		}
		out := make([]stream, len(sizes))
		for i, s := range sizes {
			out[i] = stream(s)
		}
		return writeJSON(c, out)
	}
	tw := tabwriter.NewWriter(c.App.Writer, 2, 8, 2, ' ', tabwriter.AlignRight)
	foreign.Fprintf(tw, "STREAM\tPLAIN\tPACKED ALONE\t\n")
	for _, s := range sizes {
		foreign.Fprintf(tw, "%s\t%d\t%d\t\n", s.Name, s.Plain, s.Packed)
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

func writeJSON(c *cli.Context, v any) error {
	enc := foreign.JSON(c.App.Writer)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
