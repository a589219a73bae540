// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/internal/job/bundle"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/pkg/archive"
)

// listing is the document of list.
type listing struct {
	Format int `json:"format"`
	archive.Info
	Layouts int             `json:"layouts"`
	Kernels []listingKernel `json:"kernels"`
}

type listingKernel struct {
	Kernel string `json:"kernel"` // ID/VERSION_ID/ARCH/RELEASE
	Layout int    `json:"layout"`
	*kernelSize
}

// kernelSize is what --sizes adds.
type kernelSize struct {
	BTF int `json:"btf_bytes"`
	Own int `json:"own_bytes"` // size of the definitions that no other kernel has
}

func runArchiveList(c *cli.Context) error {
	a, err := openArchive(c)
	if err != nil {
		return err
	}
	l := listing{Format: btfa.Version, Info: a.Info(), Layouts: a.Layouts(), Kernels: []listingKernel{}}
	for _, k := range a.Keys() {
		layout, _ := a.Layout(k)
		l.Kernels = append(l.Kernels, listingKernel{k.String(), layout, nil})
	}
	total := 0
	if c.Bool("sizes") {
		sizes, err := a.Sizes()
		if err != nil {
			return err
		}
		for i, s := range sizes {
			l.Kernels[i].kernelSize = &kernelSize{s.BTF, s.Own}
			total += s.BTF
		}
	}
	if c.Bool("json") {
		return document(c, l)
	}
	tw := tabwriter.NewWriter(c.App.Writer, 2, 8, 2, ' ', 0)
	head, sizes := "", "" // columns that --sizes adds
	if c.Bool("sizes") {
		head = "\tBTF\tOWN\tSHARED"
	}
	escape.Fprintf(tw, "ID\tVERSION_ID\tARCH\tRELEASE\tLAYOUT%s\n", escape.Own(head))
	for i, k := range a.Keys() {
		if s := l.Kernels[i].kernelSize; s != nil {
			sizes = fmt.Sprintf("\t%d\t%d\t%d", s.BTF, s.Own, max(0, s.BTF-s.Own))
		}
		escape.Fprintf(tw, "%s\t%s\t%s\t%s\t%d%s\n", cmp.Or(k.ID, "-"), cmp.Or(k.VersionID, "-"), cmp.Or(k.Arch, "-"), k.Release,
			l.Kernels[i].Layout, escape.Own(sizes))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	part := ""
	if l.Shard.N > 0 {
		part = fmt.Sprintf("part %s of a run: ", l.Shard)
	}
	if c.Bool("sizes") {
		fi, err := os.Stat(c.Args().First())
		if err != nil {
			return err
		}
		part += words.Bytes(fi.Size()) + " for " + words.Bytes(int64(total)) + " of BTF: "
	}
	infof(c, "%s: %s%s, %s, %s, by %s", c.Args().First(), part, words.Plural(len(l.Kernels), "kernel"),
		words.Plural(l.Layouts, "layout"), words.Plural(len(l.Objects), "object"), l.Tool)
	return nil
}

// openArchive opens the only argument, a .btfa file.
func openArchive(c *cli.Context) (*archive.Archive, error) {
	if c.NArg() != 1 {
		return nil, usagef("%s needs one ARCHIVE", c.Command.Name)
	}
	name := c.Args().First()
	a, err := bundle.OpenNative(name)
	if other := bundle.Other(name); a == nil && err == nil && other != nil {
		err = fmt.Errorf("%s: %w", name, other)
	} else if a == nil && err == nil {
		err = fmt.Errorf("%s: not a %s archive ('btfgen archive convert' makes one from a directory or tar)",
			name, bundle.NativeSuffix)
	}
	return a, err
}
