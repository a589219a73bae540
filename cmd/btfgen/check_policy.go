// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/check"
)

// policyFlags are the options of check about how a whole object is loaded.
func policyFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "loader", Usage: "judge objects as `LOADER` loads them: libbpf, ebpf-go, or both, of which the worse counts", Value: "both"},
		&cli.StringSliceFlag{Name: "optional", Usage: "objects work without the programs that match `PROGRAM`, or OBJECT:PROGRAM"},
		&cli.StringSliceFlag{Name: "one-of", Usage: "one of `PROGRAM,PROGRAM`... has to work, as of 'fentry_*,kprobe_*'; PROGRAM+PROGRAM is one alternative"},
		&cli.StringSliceFlag{Name: "when", Usage: "programs are loaded only on the kernels that a selector chooses: `PROGRAM=SELECTOR`"},
		&cli.StringSliceFlag{Name: "loader-map", Usage: "the loader sets what the maps that match `MAP` need, such as their type or size"},
		&cli.BoolFlag{Name: "no-guess", Usage: "do not guess which programs an object can do without"},
	}
}

// readPolicy reads policyFlags.
func readPolicy(c *cli.Context) (loaders []check.Loader, p check.Policy, err error) {
	loaders = check.Loaders()
	if l := check.Loader(c.String("loader")); l != "both" {
		if !slices.Contains(loaders, l) {
			return nil, p, usagef("--loader %q: want libbpf, ebpf-go or both", l)
		}
		loaders = []check.Loader{l}
	}
	p.Exact = c.Bool("no-guess")
	if p.Optional, err = parseAll(c, "optional", check.ParsePattern); err != nil {
		return nil, p, err
	}
	if p.OneOf, err = parseAll(c, "one-of", check.ParseChoice); err != nil {
		return nil, p, err
	}
	if p.When, err = parseAll(c, "when", check.ParseCondition); err != nil {
		return nil, p, err
	}
	p.Maps, err = parseAll(c, "loader-map", check.ParsePattern)
	return loaders, p, err
}

// parseAll reads the values of an option.
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

// tellUnmatchedPolicy tells what of a policy is about nothing.
func tellUnmatchedPolicy(c *cli.Context, p *check.Policy, objs []*check.Object) {
	unmatched := p.Unmatched(objs)
	for _, f := range policyFlags() {
		option := f.Names()[0]
		for _, text := range unmatched[option] {
			what := "program"
			if option == "loader-map" {
				what = "map"
			}
			tellUnmatched(c, option, text, "no object has such a "+what)
		}
	}
}
