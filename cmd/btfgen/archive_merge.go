// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/job/bundle"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// merged is the document of archive merge, extract and convert.
type merged struct {
	Output  string `json:"output"`
	Kernels int    `json:"kernels"`
	allFindings
}

func runArchiveMerge(c *cli.Context) error {
	out, err := parseOutput(c)
	if err != nil {
		return err
	}
	if c.NArg() == 0 {
		return usagef("merge needs at least one ARCHIVE")
	}
	return rewrite(c, out, chosen{}, func(ctx context.Context) (archive.Info, []archive.Kernel, error) {
		info, kernels, err := bundle.Merge(ctx, c.Args().Slice(), c.Bool("mixed"))
		if errors.Is(err, bundle.ErrOther) {
			err = fmt.Errorf("%w (--mixed allows this)", err)
		}
		return info, kernels, err
	})
}

func runArchiveConvert(c *cli.Context) error {
	out, err := parseOutput(c)
	if err != nil {
		return err
	}
	if c.NArg() != 1 {
		return usagef("convert needs one ARCHIVE")
	}
	return rewrite(c, out, chosen{}, readOne(c.Args().First()))
}

func runArchiveExtract(c *cli.Context) error {
	if c.NArg() == 0 {
		return usagef("extract needs an ARCHIVE")
	}
	var want chosen
	for _, s := range c.Args().Tail() {
		k, err := kernel.ParseKey(s)
		if err != nil {
			return usageError{err}
		}
		want.keys = append(want.keys, k.Canonical())
	}
	path := c.String("output")
	if fi, err := os.Stat(path); path == "-" || strings.HasSuffix(path, kernel.FileSuffix) && (err != nil || !fi.IsDir()) {
		if len(want.keys) != 1 {
			return valuef("output", path, "a file of BTF needs one KEY")
		}
		return extractKey(c, want, path)
	}
	out, err := parseOutput(c)
	if err != nil {
		return err
	}
	if out.Format != bundle.Dir {
		return valuef("output", path, "extract writes a directory ('btfgen archive convert' writes other formats)")
	}
	return rewrite(c, out, want, readOne(c.Args().First()))
}

// readOne returns a function that reads an archive.
func readOne(name string) func(context.Context) (archive.Info, []archive.Kernel, error) {
	return func(ctx context.Context) (archive.Info, []archive.Kernel, error) {
		info, kernels, err := bundle.ReadKernels(ctx, name)
		if err == nil && len(kernels) == 0 {
			err = fmt.Errorf("%s: no kernels", name)
		}
		return info, kernels, err
	}
}

// extractKey writes the BTF of the only kernel that is wanted to a file or standard output.
func extractKey(c *cli.Context, want chosen, path string) error {
	if err := want.parse(c); err != nil {
		return err
	}
	if err := inputsOf(c.Args().First()).refuse(path); err != nil {
		return err
	}
	if err := refuseTerminal(c, path); err != nil {
		return err
	}
	_, kernels, err := readOne(c.Args().First())(c.Context)
	if err == nil {
		kernels, err = want.of(c, kernels)
	}
	if err != nil {
		return err
	}
	if err := writeOut(c, path, kernels[0].BTF); err != nil || path == "-" {
		return err
	}
	return document(c, merged{path, 1, findingsOf(c)})
}

// rewrite writes the wanted kernels of those that read returns.
func rewrite(c *cli.Context, out bundle.Output, want chosen, read func(context.Context) (archive.Info, []archive.Kernel, error)) error {
	if err := want.parse(c); err != nil {
		return err
	}
	unlock, err := holdOutput(c, &out)
	if err != nil {
		return err
	}
	defer unlock()
	if err := out.Check(c.Context); err != nil {
		return err
	}
	info, all, err := read(c.Context)
	if err != nil {
		return err
	}
	n := len(all)
	kernels, err := want.of(c, all)
	if err != nil {
		return err
	}
	if len(kernels) < n {
		info.Shard = archive.Shard{} // which would promise all of its kernels
	}
	if len(kernels) > 0 {
		info.Tool = tool()
		var selects func(kernel.Key) bool
		if selecting(c) || len(want.keys) > 0 {
			selects = func(k kernel.Key) bool {
				return want.Selects(k) && (len(want.keys) == 0 || slices.Contains(want.keys, k.Canonical()))
			}
		}
		if _, err := writeKernels(c, &out, info, kernels, selects); err != nil {
			return err
		}
		from := words.Plural(c.NArg(), "archive")
		if c.Command.Name != "merge" {
			from = c.Args().First()
		}
		infof(c, "%s: %s of %s", out.Path, words.Plural(len(kernels), "kernel"), from)
	}
	return document(c, merged{out.Path, len(kernels), findingsOf(c)})
}

// chosen is the kernels that --select, --exclude and KEY choose.
type chosen struct {
	corpus.Options
	keys []kernel.Key // canonical; none for all
}

// parse reads the options.
func (want *chosen) parse(c *cli.Context) error { return readSelectors(c, &want.Options) }

// of returns the kernels that are wanted. A key that is missing is an error, a selector that matches nothing a finding.
func (want *chosen) of(c *cli.Context, all []archive.Kernel) ([]archive.Kernel, error) {
	index := make(map[kernel.Key]int)
	var keys []kernel.Key
	for i, k := range all {
		keys = append(keys, k.Key.Canonical())
		index[keys[i]] = i
	}
	if len(want.keys) == 0 {
		reportSelection(c, want.Selection(slices.Values(keys)))
		return slices.DeleteFunc(all, func(k archive.Kernel) bool { return !want.Selects(k.Key) }), nil
	}
	var kernels []archive.Kernel
	for _, k := range want.keys {
		switch i, ok := index[k]; {
		case !ok:
			return nil, fmt.Errorf("%s: kernel %s is missing ('btfgen archive list' lists the kernels)", c.Args().First(), k)
		case !want.Selects(all[i].Key):
			return nil, fmt.Errorf("%s: kernel %s is not selected: see --select and --exclude", c.Args().First(), k)
		case !slices.ContainsFunc(kernels, func(o archive.Kernel) bool { return o.Key == all[i].Key }):
			kernels = append(kernels, all[i])
		}
	}
	return kernels, nil
}
