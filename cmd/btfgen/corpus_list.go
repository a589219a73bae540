// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"sort"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/job/lint"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
)

func runCorpusList(c *cli.Context) error {
	corp, err := openCorpus(c, corpus.Options{Extras: c.Bool("long")})
	if err != nil {
		return err
	}
	list, skipped := lint.List(corp), corp.Skipped
	if c.Bool("long") {
		cfg, stop := walkConfig(c, corp)
		list, skipped, err = lint.Read(c.Context, cfg)
		if stop(); err != nil {
			return err
		}
	}
	reportSkipped(c, skipped)
	if len(list) == 0 {
		return errors.New("no kernel could be read")
	}
	sort.SliceStable(list, func(i, j int) bool {
		return cmp.Or(list[i].Key().Compare(list[j].Key()), cmp.Compare(list[i].Path, list[j].Path)) < 0
	})
	if !c.Bool("json") {
		err := lint.WriteTable(c.App.Writer, list, c.Bool("long"))
		if all, modules, extras := lint.Packed(list); c.Bool("long") && all > 0 {
			infof(c, "of %s in .btfc files, BTF takes %s, modules %s, configuration and symbols %s", words.Bytes(all),
				words.Bytes(all-modules-extras), words.Bytes(modules), words.Bytes(extras))
		}
		return err
	}
	enc := escape.JSON(c.App.Writer)
	for _, e := range list {
		if err := enc.Encode(e); err != nil {
			return err
		}
	}
	return findingLines(c)
}
