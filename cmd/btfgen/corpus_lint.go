// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/job/lint"
	"github.com/btfgen/btfgen/internal/text/words"
)

func runCorpusLint(c *cli.Context) error {
	corp, err := openCorpus(c, corpus.Options{Extras: true}) // a damaged configuration is a finding, too
	if err != nil {
		return err
	}
	cfg, stop := walkConfig(c, corp)
	rep, err := lint.Run(c.Context, cfg)
	stop()
	if err != nil {
		return err
	}
	shared := make(causes)
	for i := range rep.Findings {
		if f := &rep.Findings[i]; f.Shared {
			shared[causeOf(f.Path, f.Detail)]++
		}
	}
	for i := range rep.Findings {
		f := &rep.Findings[i]
		x := finding{
			Class: class(f.Code.Severity), Code: f.Code.Name, Message: f.Code.Text, Kernel: f.Kernel, File: f.Path,
		}
		if f.Detail != "" {
			x.Message += " (" + f.Detail + ")"
		}
		if f.Shared {
			shared.join(c, &x, f.Detail)
		}
		reportFinding(c, x)
	}
	infof(c, "%s: %s, %s, %s",
		words.Plural(rep.Kernels, "kernel"), words.Plural(rep.Errors, "error"), words.Plural(rep.Warnings, "warning"),
		words.Plural(rep.Notes, "note"))
	return document(c, struct {
		*lint.Report
		allFindings
	}{rep, findingsOf(c)})
}
