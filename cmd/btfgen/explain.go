// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/report/codes"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/pkg/relo"
)

func runExplain(c *cli.Context) error {
	w := bufio.NewWriter(c.App.Writer)
	if c.Args().Len() == 0 {
		for _, f := range codes.Families() {
			escape.Fprintf(w, "%s\n", f.Title)
			for _, e := range f.Codes {
				escape.Fprintf(w, "  %-34s %s\n", e.Code, e.Title)
			}
			escape.Fprintf(w, "\n")
		}
		escape.Fprintf(w, "Classes of --fail-on\n")
		for _, cl := range slices.Sorted(maps.Keys(meanings)) {
			escape.Fprintf(w, "  %s\n", cl)
		}
		return w.Flush()
	}
	for i, name := range c.Args().Slice() {
		if i > 0 {
			escape.Fprintf(w, "\n")
		}
		if e := codes.Of(relo.Code(name)); e != nil {
			if err := e.Write(w); err != nil {
				return err
			}
		} else if text, ok := meanings[name]; ok {
			escape.Fprintf(w, "%s: %s\n", name, strings.ReplaceAll(text, "`", ""))
		} else {
			return usagef("%q is neither a code nor a class%s; 'btfgen explain' lists all", name, didYouMean("", name, codesAndClasses()))
		}
	}
	return w.Flush()
}

// codesAndClasses returns the names that explain accepts.
func codesAndClasses() (all []string) {
	for _, f := range codes.Families() {
		for _, e := range f.Codes {
			all = append(all, string(e.Code))
		}
	}
	return append(all, slices.Sorted(maps.Keys(meanings))...)
}
