// SPDX-License-Identifier: Apache-2.0

package main

import (
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

// converted is the document of archive convert.
type converted struct {
	Output  string `json:"output"`
	Kernels int    `json:"kernels"`
	allFindings
}

func runArchiveConvert(c *cli.Context) error {
	if c.NArg() == 0 {
		return usagef("convert needs at least one ARCHIVE")
	}
	var want corpus.Options
	if err := readSelectors(c, &want); err != nil {
		return err
	}
	path := c.String("output")
	if fi, err := os.Stat(path); path == "-" || strings.HasSuffix(path, kernel.FileSuffix) && (err != nil || !fi.IsDir()) {
		return convertOne(c, &want, path)
	}
	out, err := parseOutput(c)
	if err != nil {
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
	info, all, err := bundle.Merge(c.Context, c.Args().Slice(), c.Bool("mixed"))
	if errors.Is(err, bundle.ErrOther) {
		err = fmt.Errorf("%w (--mixed allows this)", err)
	}
	if err != nil {
		return err
	}
	n := len(all)
	kernels := selectedOf(c, &want, all)
	if len(kernels) < n {
		info.Shard = archive.Shard{} // a shard promises all of its kernels
	}
	if len(kernels) > 0 {
		info.Tool = tool()
		var selects func(kernel.Key) bool
		if selecting(c) {
			selects = want.Selects
		}
		if _, err := writeKernels(c, &out, info, kernels, selects); err != nil {
			return err
		}
		from := words.Plural(c.NArg(), "archive")
		if c.NArg() == 1 {
			from = c.Args().First()
		}
		infof(c, "%s: %s of %s", out.Path, words.Plural(len(kernels), "kernel"), from)
	}
	return document(c, converted{out.Path, len(kernels), findingsOf(c)})
}

// convertOne writes the BTF of the only kernel that is selected to a file or standard output.
func convertOne(c *cli.Context, want *corpus.Options, path string) error {
	if c.NArg() > 1 || c.IsSet("layout") || c.Bool("replace") || c.Bool("mixed") {
		return valuef("output", path, "a file of BTF needs one ARCHIVE, and no --layout, --replace and --mixed")
	}
	name := c.Args().First()
	if err := inputsOf(name).refuse(path); err != nil {
		return err
	}
	if err := refuseTerminal(c, path); err != nil {
		return err
	}
	_, all, err := bundle.ReadKernels(c.Context, name)
	if err != nil {
		return err
	}
	kernels := selectedOf(c, want, all)
	if len(kernels) != 1 {
		return fmt.Errorf("%s: a file of BTF has one kernel, not %d: --select KEY chooses one, and 'btfgen archive list' lists them",
			name, len(kernels))
	}
	if err := writeOut(c, path, kernels[0].BTF); err != nil || path == "-" {
		return err
	}
	return document(c, converted{path, 1, findingsOf(c)})
}

// selectedOf returns the kernels that --select and --exclude choose. A selector that matches nothing is a finding.
func selectedOf(c *cli.Context, want *corpus.Options, all []archive.Kernel) []archive.Kernel {
	var keys []kernel.Key
	for _, k := range all {
		keys = append(keys, k.Key.Canonical())
	}
	reportSelection(c, want.Selection(slices.Values(keys)))
	return slices.DeleteFunc(all, func(k archive.Kernel) bool { return !want.Selects(k.Key) })
}
