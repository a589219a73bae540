// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/report/codes"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/pkg/relo"
)

// explained is the JSON of explain.
type explained struct {
	Codes   []explainedCode  `json:"codes"`
	Classes []explainedClass `json:"classes"`
}

type explainedCode struct {
	Code    relo.Code `json:"code"`
	Family  string    `json:"family"`
	Title   string    `json:"title"`
	Means   string    `json:"means"`
	Fix     string    `json:"fix"`
	Example string    `json:"example"`
}

type explainedClass struct {
	Class class  `json:"class"`
	Means string `json:"means"`
}

// plainMeaning describes a class without Markdown.
func plainMeaning(cl class) string { return strings.ReplaceAll(meanings[cl], "`", "") }

func runExplain(c *cli.Context) error {
	names := c.Args().Slice()
	all := codesAndClasses()
	for _, name := range names {
		if !slices.Contains(all, name) {
			return usagef("%q is neither a code nor a class%s; 'btfgen explain' lists all", name, didYouMean("", name, all))
		}
	}
	if c.Bool("json") {
		if len(names) == 0 {
			names = all
		}
		return document(c, explain(names))
	}
	w := bufio.NewWriter(c.App.Writer)
	if len(names) == 0 {
		listCodes(w)
	}
	for i, name := range names {
		if i > 0 {
			escape.Fprintf(w, "\n")
		}
		if e := codes.Of(relo.Code(name)); e == nil {
			escape.Fprintf(w, "%s: %s\n", name, plainMeaning(class(name)))
		} else if err := e.Write(w); err != nil {
			return err
		}
	}
	return w.Flush()
}

// explain returns the document about codes and classes.
func explain(names []string) explained {
	x := explained{[]explainedCode{}, []explainedClass{}}
	for _, name := range names {
		if e := codes.Of(relo.Code(name)); e != nil {
			x.Codes = append(x.Codes, explainedCode{e.Code, e.Family.Title, e.Title, e.Means, e.Fix, e.Example})
		} else {
			x.Classes = append(x.Classes, explainedClass{class(name), plainMeaning(class(name))})
		}
	}
	return x
}

// listCodes prints all codes and classes.
func listCodes(w io.Writer) {
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
}

// codesAndClasses returns the names that explain accepts.
func codesAndClasses() (all []string) {
	for _, f := range codes.Families() {
		for _, e := range f.Codes {
			all = append(all, string(e.Code))
		}
	}
	for _, cl := range slices.Sorted(maps.Keys(meanings)) {
		all = append(all, string(cl))
	}
	return all
}
