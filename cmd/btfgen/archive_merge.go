// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/job/bundle"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

func runArchiveMerge(c *cli.Context) error {
	out, err := parseOutput(c)
	if err != nil {
		return err
	}
	if c.NArg() == 0 {
		return usagef("merge needs at least one ARCHIVE")
	}
	return rewrite(c, &out, func() (archive.Info, []archive.Kernel, error) {
		info, kernels, err := bundle.Merge(c.Context, c.Args().Slice(), c.Bool("mixed"))
		if errors.Is(err, bundle.ErrOther) {
			err = fmt.Errorf("%w (--mixed allows this)", err)
		}
		return info, kernels, err
	})
}

func runArchiveExtract(c *cli.Context) error {
	dir, all, selects := c.String("output"), c.Bool("all"), c.IsSet("select") || c.IsSet("exclude")
	switch {
	case c.NArg() == 0:
		return usagef("extract needs an ARCHIVE")
	case dir == "" || dir == "-":
		return usagef("extract needs -o DIR")
	case all && c.NArg() > 1:
		return usagef("--all does not go with a KEY")
	case selects && c.NArg() > 1:
		return usagef("--select does not go with a KEY")
	case !all && !selects && c.NArg() == 1:
		return usagef("extract needs a KEY, --select or --all")
	}
	var opts corpus.Options
	if err := selection(c, &opts); err != nil {
		return err
	}
	var keys []kernel.Key
	for _, s := range c.Args().Tail() {
		k, err := kernel.ParseKey(s)
		if err != nil {
			return usagef("%w (--select takes selectors)", err)
		}
		keys = append(keys, k)
	}
	return rewrite(c, &bundle.Output{Path: dir, Format: bundle.Dir}, func() (archive.Info, []archive.Kernel, error) {
		info, kernels, err := bundle.ReadKernels(c.Context, c.Args().First())
		if err == nil && !all {
			info.Shard = archive.Shard{} // which would promise all of its kernels
			kernels = pick(c, kernels, keys, &opts)
		}
		return info, kernels, err
	})
}

// pick returns the kernels with some keys or, without keys, those that selectors choose. It reports what is missing.
func pick(c *cli.Context, kernels []archive.Kernel, keys []kernel.Key, opts *corpus.Options) []archive.Kernel {
	var have []kernel.Key
	for _, k := range kernels {
		have = append(have, k.Key.Canonical())
	}
	selects := opts.Selects
	if len(keys) == 0 {
		reportSelection(c, opts.Selection(slices.Values(have)))
	} else {
		selects = func(k kernel.Key) bool {
			return slices.ContainsFunc(keys, func(key kernel.Key) bool { return key.Canonical() == k.Canonical() })
		}
	}
	for _, key := range keys {
		if !slices.Contains(have, key.Canonical()) {
			reportFinding(c, finding{Class: missing, Message: "not in the archive", Kernel: key.String()})
		}
	}
	return slices.DeleteFunc(kernels, func(k archive.Kernel) bool { return !selects(k.Key) })
}

// archiveJSON is the document of commands that write an archive.
type archiveJSON struct {
	Output  string `json:"output"`
	Kernels int    `json:"kernels"`
	allFindings
}

// rewrite writes what read returns to an output. It writes nothing if there is no kernel.
func rewrite(c *cli.Context, out *bundle.Output, read func() (archive.Info, []archive.Kernel, error)) error {
	sources, extract := c.Args().Slice(), c.Command.Name == "extract"
	if extract {
		sources = sources[:1]
	}
	unlock, err := holdOutput(c, out, sources...)
	if err != nil {
		return err
	}
	defer unlock()
	if err := out.Check(c.Context); err != nil {
		return err
	}
	info, kernels, err := read()
	if err != nil {
		return err
	}
	if len(kernels) > 0 || !extract {
		info.Tool = tool()
		if _, err := writeKernels(c, out, info, kernels); err != nil {
			return err
		}
		of := ""
		if !extract {
			of = " of " + words.Plural(len(sources), "archive")
		}
		infof(c, "%s: %s%s", out.Path, words.Plural(len(kernels), "kernel"), of)
	}
	return document(c, archiveJSON{out.Path, len(kernels), findingsOf(c)})
}
