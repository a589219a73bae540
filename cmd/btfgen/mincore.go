// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/job/generate"
	"github.com/btfgen/btfgen/internal/minimize"
	"github.com/btfgen/btfgen/internal/output"
)

func minCoreBTF(c *cli.Context) error {
	if c.NArg() < 3 && (c.NArg() < 2 || !c.IsSet("keep")) {
		return usagef("min_core_btf needs INPUT, OUTPUT and at least one OBJECT")
	}
	input, out := c.Args().Get(0), c.Args().Get(1)
	if c.Bool("json") && out == "-" {
		return jsonOutput()
	}
	keep, err := keepOption(c)
	if err != nil {
		return err
	}
	objs, err := readKept(c, c.Args().Slice()[2:], keep, true)
	if err != nil {
		return err
	}
	sources := []string{input}
	if base := c.String("base-btf"); base != "" {
		sources = []string{base, input}
	}
	err = inputsOf(append(sources, objs.paths...)...).refuse(out)
	if errors.Is(err, output.ErrELF) {
		return usagef("%s is an ELF file, and OUTPUT replaces a file; the arguments are INPUT OUTPUT OBJECT...", out)
	} else if err != nil {
		return err
	}
	modules, err := chosenModules(c)
	if err != nil {
		return err
	}
	rep, err := generate.One(c.Context, sources, objs.list, modules, minimize.Options{Keep: keep})
	if err != nil {
		return err
	}
	for _, e := range rep.Skipped {
		if !errors.Is(e, corpus.ErrUnmet) {
			reportSkipped(c, []*corpus.Error{e})
			continue
		}
		reportIfVerbose(c, finding{Class: skipped, Object: e.Path, Message: "is not for the machine of " + input})
	}
	reportModules(c, rep.Corpus.ModulesNotFound())
	k := &rep.Kernels[0]
	if err := writeOut(c, out, k.BTF); err != nil {
		return err
	}
	for _, u := range rep.Unresolved {
		text := u.Relo + disagreement(&u.Issue)
		reportFinding(c, finding{Class: class(u.Result.String()), Message: text, Object: u.Object})
	}
	reportKept(c, rep)
	return document(c, struct {
		Output     string                `json:"output"`
		In         int64                 `json:"bytes_in"` // size of the kernel's BTF
		Out        int                   `json:"bytes_out"`
		SHA256     string                `json:"sha256"` // digest of the output
		Unresolved []generate.Unresolved `json:"unresolved"`
		allFindings
	}{
		out, k.RawSize, len(k.BTF), fmt.Sprintf("%x", sha256.Sum256(k.BTF)),
		append([]generate.Unresolved{}, rep.Unresolved...), findingsOf(c),
	})
}
