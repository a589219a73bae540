// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/job/generate"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
)

// objectChanges are the texts of DiffObject.Change.
var objectChanges = map[string]string{
	generate.ObjectGained: "new", generate.ObjectLost: "removed", generate.ObjectRelocations: "other relocations",
	generate.ObjectCode: "the same relocations, other code", generate.ObjectFile: "another file",
}

func runArchiveDiff(c *cli.Context) error {
	if c.NArg() != 2 {
		return usagef("diff needs OLD and NEW")
	}
	d, err := generate.Compare(c.Context, c.Args().Get(0), c.Args().Get(1))
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return document(c, d)
	}
	w := bufio.NewWriter(c.App.Writer)
	for _, o := range d.Objects {
		escape.Fprintf(w, "object %s: %s\n", o.Name, objectChanges[o.Change])
	}
	for _, k := range d.Gained {
		escape.Fprintf(w, "+ %s  %s\n", k.Kernel, words.Bytes(k.NewSize))
	}
	for _, k := range d.Lost {
		escape.Fprintf(w, "- %s  %s\n", k.Kernel, words.Bytes(k.OldSize))
	}
	for _, k := range d.Changed {
		escape.Fprintf(w, "~ %s  %s → %s\n", k.Kernel, words.Bytes(k.OldSize), words.Bytes(k.NewSize))
	}
	escape.Fprintf(w, "%s: %d gained, %d lost, %d changed, %d the same", words.Plural(d.New.Kernels, "kernel"), len(d.Gained), len(d.Lost), len(d.Changed), d.Same)
	if d.Old.Size > 0 && d.New.Size > 0 {
		escape.Fprintf(w, "; %s before, %s now", words.Bytes(d.Old.Size), words.Bytes(d.New.Size))
	}
	escape.Fprintf(w, "\n")
	return w.Flush()
}
