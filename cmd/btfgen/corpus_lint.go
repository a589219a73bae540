// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/job/lint"
)

func runCorpusLint(c *cli.Context) error {
	corp, err := openCorpus(c, corpus.Options{})
	if err != nil {
		return err
	}
	cfg, stop := walkConfig(c, corp)
	rep, err := lint.Run(c.Context, cfg)
	stop()
	if err != nil {
		return err
	}
	if !c.Bool("json") {
		err = rep.Text(c.App.Writer, c.Bool("verbose"))
	}
	infof(c, "%s", rep.Summary())
	for _, f := range rep.Findings {
		x := finding{Class: class(f.Code.Severity.String()), Code: f.Code.Name, Message: f.Code.Text, Kernel: f.Kernel, File: f.Path}
		if f.Detail != "" {
			x.Message += " (" + f.Detail + ")"
		}
		record(c, x)
	}
	return cmp.Or(err, document(c, struct {
		*lint.Report
		allFindings
	}{rep, findingsOf(c)}))
}
