// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/bpfobj/embedded"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/naming"
	"github.com/btfgen/btfgen/internal/corpus/selection"
	"github.com/btfgen/btfgen/internal/corpus/walk"
	"github.com/btfgen/btfgen/internal/text/words"
)

// readSelectors sets the selectors of --select and --exclude.
func readSelectors(c *cli.Context, o *corpus.Options) (err error) {
	if o.Select, err = selectors(c, "select"); err == nil {
		o.Exclude, err = selectors(c, "exclude")
	}
	return err
}

// selectors returns the values of an option.
func selectors(c *cli.Context, name string) ([]selection.Selector, error) {
	return parseAll(c, name, selection.Parse)
}

// patterns returns the values of an option, which are patterns for [path.Match].
func patterns(c *cli.Context, name string) ([]string, error) {
	all := c.StringSlice(name)
	for _, p := range all {
		if _, err := path.Match(p, ""); err != nil {
			return nil, valuef(name, p, "%w", err)
		}
	}
	return all, nil
}

// runningKernel is the directory with the BTF of the running kernel and its modules.
const runningKernel = "/sys/kernel/btf"

// openCorpus opens the corpus of --btf or, for the corpus commands, of the arguments. The default is the running kernel.
func openCorpus(c *cli.Context, opts corpus.Options) (*corpus.Corpus, error) {
	sources := c.StringSlice("btf")
	if strings.Contains(c.Command.ArgsUsage, "SOURCE") {
		sources = c.Args().Slice()
	}
	switch {
	case len(sources) == 0:
		if sources = []string{runningKernel}; !strings.Contains(c.Command.ArgsUsage, "SOURCE") {
			infof(c, "btfgen: without --btf: the running kernel, %s", runningKernel)
		}
	case slices.Contains(sources, ""):
		return nil, optionf("btf", "is empty")
	}
	for _, s := range c.StringSlice("btf") {
		if embedded.IsObject(s) {
			infof(c, "btfgen: --btf %s: a BPF object in place of a kernel; objects are arguments without an option", s)
		}
	}
	return openSources(c, sources, opts)
}

// openSources opens a corpus. Each kernel is in it once, except for list and lint, which are about files. Selectors that
// match no kernel are reported at the end of the run.
func openSources(c *cli.Context, sources []string, opts corpus.Options) (corp *corpus.Corpus, err error) {
	if err := readSelectors(c, &opts); err != nil {
		return nil, err
	}
	as, err := parseAll(c, "as", naming.Parse)
	if err != nil {
		return nil, err
	}
	opts.As = append(opts.As, as...)
	if opts.Modules, err = chosenModules(c); err != nil {
		return nil, err
	}
	corp, err = corpus.Open(c.Context, sources, opts)
	if err == nil && c.Command.Name != "list" && c.Command.Name != "lint" {
		err = corp.Distinct(c.Context, c.Int("jobs"))
	}
	if err == nil && c.Bool("without-btf") {
		var n corpus.OwnBTFCounts
		if n, err = corp.WithoutBTF(c.Context, c.Int("jobs")); err == nil {
			reportOwnBTF(c, n.Left, n.Unknown)
		}
	}
	if err == nil {
		found(c).deferred = append(found(c).deferred, func() {
			reportLinks(c, corp.Links())
			reportSelection(c, corp.Selection())
			reportModules(c, corp.ModulesNotFound())
		})
	}
	return corp, err
}

// reportOwnBTF says what --without-btf leaves out, and of how many kernels it is not known.
func reportOwnBTF(c *cli.Context, left, unknown int) {
	if left > 0 {
		infof(c, "btfgen: left out because of BTF of their own: %s", words.Plural(left, "kernel"))
	}
	if unknown > 0 {
		infof(c, "btfgen: kept because it is not known whether they have BTF of their own: %s",
			words.Plural(unknown, "kernel"))
	}
}

// chosenModules reads --modules, if the command has it.
func chosenModules(c *cli.Context) (*selection.Modules, error) {
	text := c.String("modules")
	if text == "" && !c.IsSet("modules") { // the command has no such option
		return nil, nil
	}
	m, err := selection.ParseModules(text)
	if err != nil {
		return nil, valuef("modules", text, "%w", err)
	}
	return m, nil
}

// reportModules reports modules of --modules that no kernel has.
func reportModules(c *cli.Context, missing []selection.NotFound) {
	for _, m := range missing {
		hint := "no kernel has BTF of this module"
		if m.Nearest != "" {
			hint += "; did you mean " + m.Nearest + "?"
		}
		reportUnmatched(c, "modules", m.Name, hint)
	}
}

// reportLinks says how many links are left out and, with --verbose, which.
func reportLinks(c *cli.Context, links []*corpus.Error) {
	switch {
	case found(c).verbose:
		for _, e := range links {
			infof(c, "btfgen: left out: %v", e)
		}
	case len(links) > 0 && !found(c).quiet:
		infof(c, "btfgen: left out as second names of kernels: %s%s", words.Plural(len(links), "link"), listsThem(c))
	}
}

// listsThem is the end of a line about what --verbose lists, for commands that have it.
func listsThem(c *cli.Context) string {
	if slices.ContainsFunc(c.Command.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), "verbose") }) {
		return " (-v lists them)"
	}
	return ""
}

func reportSelection(c *cli.Context, s corpus.Selection) {
	for _, u := range s.Unmatched {
		name := "select"
		if u.Excludes {
			name = "exclude"
		}
		if s.Unread == 0 {
			reportUnmatched(c, name, u.Selector.String(), u.Nearest)
		} else {
			infof(c, "btfgen: --%s %s: matches no kernel; the keys in %s are unknown without reading them",
				name, u.Selector, words.Plural(s.Unread, "file"))
		}
	}
}

// reportUnmatched reports that the value of an option matches nothing, with a hint or "".
func reportUnmatched(c *cli.Context, name, value, hint string) {
	if hint == "" {
		hint = "matches nothing"
	}
	reportf(c, unmatched, "--%s %s: %s", name, value, hint)
}

// walkConfig returns how to read a corpus, and shows the progress. stop ends that and must be called.
func walkConfig(c *cli.Context, corp *corpus.Corpus) (cfg walk.Config, stop func()) {
	p := newProgress(c)
	return walk.Config{Corpus: corp, Jobs: c.Int("jobs"), Progress: p.set}, p.finish
}
