// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/check"
	"github.com/btfgen/btfgen/internal/corpus"
)

// formatFlag is the option of check that chooses its output.
func formatFlag() cli.Flag {
	f := choiceFlag("format", "print `FORMAT`: text, markdown, json, junit, sarif, html, min-kernel, suggest, table or badge",
		"text", "markdown", "json", "junit", "sarif", "html", "min-kernel", "suggest", "table", "badge")
	f.Aliases = []string{"f"}
	return f
}

// policyFlags are the options of check about how a whole object is loaded.
func policyFlags() []cli.Flag {
	return []cli.Flag{
		choiceFlag("loader", "judge for `LOADER`: libbpf, ebpf-go, or the worse of both", "both", "libbpf", "ebpf-go"),
		&cli.StringSliceFlag{Name: "optional", Usage: "objects work without programs that match `[OBJECT:]PROGRAM`"},
		&cli.StringSliceFlag{Name: "one-of", Usage: "at least one of `PROGRAM,PROGRAM` must work; A+B is one alternative"},
		&cli.StringSliceFlag{Name: "when", Usage: "load a program only on some kernels: `PROGRAM=SELECTOR`"},
		&cli.StringSliceFlag{Name: "loader-map", Usage: "the loader sets up maps that match `MAP`"},
		&cli.BoolFlag{Name: "no-guess", Usage: "do not guess which programs are optional"},
	}
}

// readPolicy reads policyFlags.
func readPolicy(c *cli.Context) (loaders []check.Loader, p check.Policy, err error) {
	loaders = check.Loaders()
	if l := c.String("loader"); l != "both" {
		loaders = []check.Loader{check.Loader(l)}
	}
	p.Exact = c.Bool("no-guess")
	for _, option := range []string{"optional", "one-of", "when", "loader-map"} {
		for _, text := range c.StringSlice(option) {
			if err := p.Add(option, text); err != nil {
				return nil, p, usagef("--%s %q: %w", option, text, err)
			}
		}
	}
	return loaders, p, nil
}

// parseAll parses the values of an option.
func parseAll[T any](c *cli.Context, option string, parse func(string) (T, error)) (all []T, err error) {
	for _, text := range c.StringSlice(option) {
		x, err := parse(text)
		if err != nil {
			return nil, usagef("--%s %q: %w", option, text, err)
		}
		all = append(all, x)
	}
	return all, nil
}

// reportUnmatchedPolicy reports the parts of a policy that match no program or map.
func reportUnmatchedPolicy(c *cli.Context, p *check.Policy, objs []*check.Object) {
	unmatched := p.Unmatched(objs)
	for _, f := range policyFlags() {
		option := f.Names()[0]
		for _, text := range unmatched[option] {
			what := "program"
			if option == "loader-map" {
				what = "map"
			}
			reportUnmatched(c, option, text, "no object has such a "+what)
		}
	}
}

// typesFlag names types that the loader supplies and kernels do not have.
func typesFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "types", Usage: "add the types in `FILE`, BTF or ELF, to each kernel's, as the loader does"}
}

// readTypes reads the files of --types.
func readTypes(c *cli.Context) (all []check.Types, err error) {
	for _, path := range c.StringSlice("types") {
		corp, err := corpus.Open(c.Context, []string{path}, corpus.Options{})
		if err != nil {
			return nil, fmt.Errorf("--types: %w", err)
		}
		var found []check.Types
		for _, f := range corp.Files {
			if err := f.Read(c.Context, func(k *corpus.Kernel) error {
				found = append(found, check.Types{Name: path, BTF: bytes.Clone(k.BTF)})
				return nil
			}); err != nil {
				return nil, fmt.Errorf("--types: %w", err)
			}
		}
		if len(found) != 1 {
			return nil, usagef("--types %s: holds %d BTFs, want one", path, len(found))
		}
		all = append(all, found...)
	}
	return all, nil
}
