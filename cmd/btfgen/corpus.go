// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/walk"
	"github.com/btfgen/btfgen/internal/text/words"
)

func corpusCommand() *cli.Command {
	return &cli.Command{
		Name:  "corpus",
		Usage: "inspect, check, import and extract kernel BTFs",
		Subcommands: []*cli.Command{
			corpusListCommand(),
			corpusLintCommand(),
			corpusImportCommand(),
			corpusExtractCommand(),
		},
	}
}

// corpusFlags are the options of all commands that read kernels. corpusOptions evaluates them.
func corpusFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "select", Usage: "use only kernels that match `SELECTOR`, such as 'debian>=11,x86_64'"},
		&cli.StringSliceFlag{Name: "exclude", Usage: "skip kernels that match `SELECTOR`"},
		&cli.StringSliceFlag{Name: "as", Usage: "set the key of kernels: `[PATTERN=]KEY`, as in '*.btf=debian/12/{arch}/{release}'"},
	}
}

// corpusOptions returns the options of corpusFlags.
func corpusOptions(c *cli.Context) (o corpus.Options, err error) {
	if o.Select, err = selectors(c, "select"); err != nil {
		return o, err
	}
	if o.Exclude, err = selectors(c, "exclude"); err != nil {
		return o, err
	}
	for _, text := range c.StringSlice("as") {
		n, err := corpus.ParseNaming(text)
		if err != nil {
			return o, usagef("--as: %w", err)
		}
		o.As = append(o.As, n)
	}
	return o, nil
}

// selectors returns the values of an option.
func selectors(c *cli.Context, name string) ([]corpus.Selector, error) {
	all, err := corpus.ParseSelectors(c.StringSlice(name))
	if err != nil {
		return nil, usagef("--%s: %w", name, err)
	}
	return all, nil
}

// patterns returns the values of an option, which are patterns for [path.Match].
func patterns(c *cli.Context, name string) ([]string, error) {
	all := c.StringSlice(name)
	for _, p := range all {
		if _, err := path.Match(p, ""); err != nil {
			return nil, usagef("--%s %q: %w", name, p, err)
		}
	}
	return all, nil
}

// openSources opens the corpus of the arguments. Without any it is the running kernel, if the command allows that.
func openSources(c *cli.Context, opts corpus.Options, running bool) (*corpus.Corpus, error) {
	sources := c.Args().Slice()
	if len(sources) == 0 {
		if !running {
			return nil, usagef("%s needs a SOURCE", c.Command.Name)
		}
		sources = []string{runningKernel}
	}
	return openWith(c, sources, opts)
}

// openWith opens a corpus. Each kernel is in it once, except for list and lint, which are about files. Selectors that match
// no kernel are reported at the end of the run.
func openWith(c *cli.Context, sources []string, opts corpus.Options) (*corpus.Corpus, error) {
	corp, err := corpus.Open(c.Context, sources, opts)
	if errors.Is(err, corpus.ErrNaming) {
		err = usageError{err}
	}
	if err == nil && c.Command.Name != "list" && c.Command.Name != "lint" {
		err = corp.Distinct(c.Context, max(c.Int("jobs"), 1))
	}
	if err == nil {
		found(c).atEnd = append(found(c).atEnd, func() { reportSelection(c, corp.Selection()) })
	}
	return corp, err
}

func reportSelection(c *cli.Context, s corpus.Selection) {
	for _, u := range s.Unmatched {
		name := "select"
		if u.Excludes {
			name = "exclude"
		}
		if s.Unread == 0 {
			tellUnmatched(c, name, u.Selector.String(), u.Nearest)
		} else {
			say(c, "btfgen: --%s %s: matches no kernel; the keys in %s are unknown without reading them", name, u.Selector, words.Plural(s.Unread, "file"))
		}
	}
	if n := len(s.Words); n > 0 {
		const few = 4
		text := strings.Join(s.Words[:min(n, few)], ", ")
		if n > few {
			text += fmt.Sprintf(" and %d more", n-few)
		}
		say(c, "left out: --select compares version numbers, and these versions do not begin with one: %s", text)
	}
}

// tellUnmatched reports that the value of an option matches nothing, with a hint or "".
func tellUnmatched(c *cli.Context, name, value, hint string) {
	if hint == "" {
		hint = "matches nothing"
	}
	tell(c, unmatched, "--%s %s: %s", name, value, hint)
}

// walkConfig returns how to read a corpus, with a progress bar. stop ends the bar and must be called.
func walkConfig(c *cli.Context, corp *corpus.Corpus) (cfg walk.Config, stop func()) {
	bar := newProgress(c, len(corp.Files))
	return walk.Config{Corpus: corp, Jobs: c.Int("jobs"), Progress: bar.set}, bar.finish
}
