package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/decompress"
)

// corpusFlags are the options of all commands that read a corpus: which of its
// kernels, and how. corpusOptions evaluates them.
func corpusFlags() []cli.Flag {
	return []cli.Flag{
		&cli.GenericFlag{Name: "select", Value: new(selectors), Usage: "only kernels that the `SELECTOR` matches, such as 'debian>=11,x86_64' or '>=5.4' (repeatable: any of them)"},
		&cli.GenericFlag{Name: "exclude", Value: new(selectors), Usage: "no kernels that the `SELECTOR` matches (repeatable)"},
		&cli.StringFlag{Name: "xz", Usage: "decode .xz with the xz program, which is faster, or in Go: `DECODER` auto, program or go", Value: "auto"},
	}
}

// selectors is the value of a repeatable option. The library's own slices split
// their values at commas, which selectors have.
type selectors []corpus.Selector

func (s *selectors) Set(text string) error {
	sel, err := corpus.ParseSelector(text)
	if err == nil {
		*s = append(*s, sel)
	}
	return err
}

func (s *selectors) String() string {
	texts := make([]string, len(*s))
	for i, sel := range *s {
		texts[i] = sel.String()
	}
	return strings.Join(texts, " ")
}

// corpusOptions returns what the options of corpusFlags ask for.
func corpusOptions(c *cli.Context) (o corpus.Options, err error) {
	o.Select = *c.Generic("select").(*selectors)
	o.Exclude = *c.Generic("exclude").(*selectors)
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
