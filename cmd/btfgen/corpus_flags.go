// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/decompress"
	"github.com/btfgen/btfgen/internal/logtext"
)

// corpusFlags are the options of all commands that read a corpus: which of its
// kernels, and how. corpusOptions evaluates them.
func corpusFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "select", Usage: "only kernels that the `SELECTOR` matches, such as 'debian>=11,x86_64' or '>=5.4' (repeatable: any of them)"},
		&cli.StringSliceFlag{Name: "exclude", Usage: "no kernels that the `SELECTOR` matches (repeatable)"},
		&cli.StringSliceFlag{Name: "as", Usage: "kernels are called `[PATH=]ID/VERSION_ID/ARCH[/RELEASE]` where PATH fits; parts may be {id}, {version}, {arch}, {release} (repeatable: the first that fits)"},
		&cli.StringFlag{Name: "xz", Usage: "decode .xz with the xz program, which is faster, or in Go: `DECODER` auto, program or go", Value: "auto"},
	}
}

// corpusOptions returns what the options of corpusFlags ask for.
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
	switch x := c.String("xz"); x {
	case "auto":
	case "program":
		o.XZ = decompress.Program
	case "go":
		o.XZ = decompress.BuiltIn
	default:
		return o, usagef("--xz %q: want auto, program or go", x)
	}
	return o, nil
}

// selectors reads the values of an option.
func selectors(c *cli.Context, name string) ([]corpus.Selector, error) {
	all, err := corpus.ParseSelectors(c.StringSlice(name))
	if err != nil {
		return nil, usagef("--%s: %w", name, err)
	}
	return all, nil
}

// patterns reads the values of an option, which are patterns as of [path.Match].
func patterns(c *cli.Context, name string) ([]string, error) {
	all := c.StringSlice(name)
	for _, p := range all {
		if _, err := path.Match(p, ""); err != nil {
			return nil, usagef("--%s %q: %w", name, p, err)
		}
	}
	return all, nil
}

// openWith opens the corpus of some sources, in which each kernel is once, but for commands that look at the files themselves. Namings that do not go with it are wrong usage; what selectors do
// not match is told at the end of the run.
func openWith(c *cli.Context, sources []string, opts corpus.Options) (*corpus.Corpus, error) {
	corp, err := corpus.Open(c.Context, sources, opts)
	if errors.Is(err, corpus.ErrNaming) {
		err = usageError{err}
	}
	if err == nil && c.Command.Name != "list" && c.Command.Name != "lint" {
		err = corp.Distinct(c.Context, max(c.Int("jobs"), 1))
	}
	if err == nil {
		found(c).atEnd = append(found(c).atEnd, func() { tellSelection(c, corp.Selection()) })
	}
	return corp, err
}

func tellSelection(c *cli.Context, s corpus.Selection) {
	for _, u := range s.Unmatched {
		name := "select"
		if u.Excludes {
			name = "exclude"
		}
		if s.Unread == 0 {
			tellUnmatched(c, name, u.Selector.String(), u.Nearest)
		} else {
			say(c, "btfgen: --%s %s: matches no kernel that is known without reading %s", name, u.Selector, logtext.Plural(s.Unread, "file"))
		}
	}
	if n := len(s.Words); n > 0 {
		const some = 4
		text := strings.Join(s.Words[:min(n, some)], ", ")
		if n > some {
			text += fmt.Sprintf(" and %d more", n-some)
		}
		say(c, "left out: versions that do not begin with a number have no place in the order that --select asks for: %s", text)
	}
}

// tellUnmatched tells that nothing was found for the value of an option, and what there is instead.
func tellUnmatched(c *cli.Context, name, value, instead string) {
	if instead == "" {
		instead = "matches nothing"
	}
	tell(c, unmatched, "--%s %s: %s", name, value, instead)
}
