// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/job/generate"
)

func keepFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "keep", Usage: "keep the kernel's types that `PATTERN` names, for user space: enum:NAME, struct:NAME, struct:NAME.MEMBER,…, union:, typedef:, func: or var:; OBJECT may be left out then"}
}

// objectsOrNone reads objects where there need not be any, because types are kept without.
func objectsOrNone(c *cli.Context, args []string, keep *core.Keep, read func(*cli.Context, []string) (*objects, error)) (*objects, error) {
	if len(args) == 0 && len(keep.Patterns()) > 0 {
		return new(objects), nil
	}
	return read(c, args)
}

// tellKept tells which patterns of --keep name nothing.
func tellKept(c *cli.Context, rep *generate.Report) {
	for _, p := range rep.NeverMatched() {
		tell(c, unmatched, "--keep %s: no kernel has such a type", p)
	}
}
