// SPDX-License-Identifier: Apache-2.0

// Factstrees reads kernel trees and prints which of them have the facts and the witnesses that check's tables name: test data, compared with the
// tables by a test.
//
//	factstrees [-only REGEXP] TABLES [NAME[:VENDOR]=]TREE ...
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/testing/kerneltree"
)

const head = `# What trees of the Linux kernel have, read from their sources by scripts/facts-trees: names and facts only. A tree has its name, its release of Linux,
# its vendor (- for Linux itself and its updates) and the start of the SHA-256 of its kernel/bpf/verifier.c. Lines below have a + for each tree with
# the names and a . for each without, in the order of the trees. Package kerneltree says what the paragraphs are. Unless a paragraph
# names settings, they are taken to be on.
`

func main() {
	only := flag.String("only", "", "print only what begins like this `regexp`: a relation, a space and a name")
	flag.Parse()
	args := flag.Args()
	if len(args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: factstrees [-only REGEXP] TABLES [NAME[:VENDOR]=]TREE ...")
		os.Exit(2)
	}
	begins, err := regexp.Compile("^(" + *only + ")")
	if err == nil {
		err = run(begins, args[0], args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "factstrees:", err)
		os.Exit(1)
	}
}

func run(only *regexp.Regexp, tables string, args []string) error {
	var asked []string
	for _, name := range []string{"facts.txt", "maps.txt"} {
		text, err := os.ReadFile(filepath.Join(tables, name))
		if err != nil {
			return err
		}
		asked = append(asked, witnesses(string(text))...)
	}
	slices.Sort(asked)
	asked = slices.Compact(asked)
	var columns []kerneltree.Column
	var trees []*kerneltree.Tree
	for _, arg := range args {
		name, path, ok := strings.Cut(arg, "=")
		if !ok {
			name, path = "", arg
		}
		t, err := kerneltree.Read(path, asked)
		if err != nil {
			return err
		}
		for relation, names := range t.Relations {
			maps.DeleteFunc(names, func(name string, _ bool) bool { return !only.MatchString(relation + " " + name) })
		}
		maps.DeleteFunc(t.Relations, func(_ string, names map[string]bool) bool { return len(names) == 0 })
		name, vendor, _ := strings.Cut(name, ":")
		if name == "" {
			name = t.Release
		}
		columns = append(columns, kerneltree.Column{Name: name, Release: t.Release, Vendor: vendor, Sum: t.Sum})
		trees = append(trees, t)
		fmt.Fprintf(os.Stderr, "%s: %s, taken for true: %s\n", path, name, strings.Join(t.Unknown, " "))
	}
	fmt.Print(head)
	return kerneltree.New(columns, trees).Write(os.Stdout)
}

// witnesses returns the witnesses that a table names.
func witnesses(table string) (l []string) {
	for line := range strings.Lines(table) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if ok && line[0] == '\t' && slices.Contains([]string{"witness", "hint", "against"}, key) {
			l = append(l, strings.TrimPrefix(value, "static "))
		}
	}
	return l
}
