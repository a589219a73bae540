// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/job/bundle"
)

func archiveCommand() *cli.Command {
	return &cli.Command{
		Name:  "archive",
		Usage: "look into archives, and make others of them",
		Subcommands: []*cli.Command{
			archiveListCommand(),
			archiveLookupCommand(),
			archiveExtractCommand(),
			archiveMergeCommand(),
			archiveConvertCommand(),
		},
	}
}

// tool is what archives say that they were written by.
func tool() string { return "btfgen " + buildVersion() }

func layoutFlag() cli.Flag {
	return &cli.StringFlag{Name: "layout", Usage: "names in a directory or tar: `KIND` btfhub, or bcc (a .tar.gz for bcc's tools to embed)", Value: "btfhub"}
}

// parseOutput reads -o and --layout.
func parseOutput(c *cli.Context) (o bundle.Output, err error) {
	switch path := c.String("output"); path {
	case "":
		return o, usagef("%s needs -o OUT", c.Command.Name)
	case "-":
		return o, usagef("-o -: the name of the output says what it is, so it cannot be standard output")
	default:
		if o, err = bundle.OutputAt(path); err != nil {
			return o, usageError{err}
		}
	}
	switch l := c.String("layout"); l {
	case "btfhub":
	case "bcc":
		if o.BCC = true; o.Native || o.Format != bundle.TarGz {
			return o, usagef("--layout bcc: bcc's tools read .tar.gz only")
		}
	default:
		return o, usagef("--layout %q: want btfhub or bcc", l)
	}
	return o, nil
}
