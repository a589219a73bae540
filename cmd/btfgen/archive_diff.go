// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/job/generate"
	"github.com/btfgen/btfgen/internal/report"
)

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
	return report.ArchiveDiff(c.App.Writer, d, c.String("format"))
}
