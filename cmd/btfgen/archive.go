// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/job/bundle"
	"github.com/btfgen/btfgen/pkg/archive"
)

func archiveCommand() *cli.Command {
	return &cli.Command{
		Name:  "archive",
		Usage: "inspect, compare, extract, merge and convert archives",
		Subcommands: []*cli.Command{
			archiveListCommand(),
			archiveDiffCommand(),
			archiveLookupCommand(),
			archiveExtractCommand(),
			archiveMergeCommand(),
			archiveConvertCommand(),
		},
	}
}

// archiveJSON is the document of commands that write an archive.
type archiveJSON struct {
	Output  string `json:"output"`
	Kernels int    `json:"kernels"`
	allFindings
}

// openArchive opens the only argument, a .btfa file.
func openArchive(c *cli.Context) (*archive.Archive, error) {
	if c.NArg() != 1 {
		return nil, usagef("%s needs one ARCHIVE", c.Command.Name)
	}
	name := c.Args().First()
	native, err := bundle.IsNative(name)
	if err != nil {
		return nil, err
	}
	if !native {
		return nil, fmt.Errorf("%s: not a %s archive ('btfgen archive convert' makes one from a directory or tar)", name, bundle.NativeSuffix)
	}
	return archive.OpenFile(name)
}
