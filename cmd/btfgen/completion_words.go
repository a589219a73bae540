// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// completionTime limits the search for kernels.
const completionTime = 2 * time.Second

// keys returns the keys of the kernels that the command line names, as far as paths have them.
func (l *commandLine) keys(app *cli.App) (keys []kernel.Key) {
	if l.path == "archive extract" {
		if len(l.args) > 0 {
			if a, err := archive.OpenFile(l.args[0]); err == nil {
				keys = a.Keys()
			}
		}
		return keys
	}
	all := *l
	all.options, all.args = slices.Clone(l.options), slices.Clone(l.args)
	_ = all.configure(app) // completion goes on after errors
	var sources []string
	if a := argumentKeys(l.command); len(a) > 0 && a[0].name == "btf" {
		sources = all.args
	}
	for _, o := range all.options {
		if o.name() == "btf" {
			sources = append(sources, o.value)
		}
	}
	if len(sources) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), completionTime)
	defer cancel()
	c, err := corpus.Open(ctx, sources, corpus.Options{})
	if err != nil {
		return nil
	}
	for _, f := range c.Files {
		keys = append(keys, f.Key)
	}
	return keys
}

// selectorTerms returns what the last term of a selector can become: a distribution, an architecture, or a key.
func selectorTerms(keys []kernel.Key, term string) []candidate {
	if strings.Contains(term, "/") {
		return keyParts(keys, term)
	}
	found := make(map[string]bool)
	for _, k := range keys {
		found[k.ID], found[k.Arch] = true, true
	}
	delete(found, "") // of kernels whose key is unknown
	return plain(slices.Sorted(maps.Keys(found))...)
}

// keyParts returns the beginnings of keys that are one component longer than a word is.
func keyParts(keys []kernel.Key, word string) []candidate {
	found := make(map[string]bool)
	for _, k := range keys {
		rest, ok := strings.CutPrefix(k.String(), word)
		if !ok {
			continue
		}
		if i := strings.IndexByte(rest, '/'); i >= 0 {
			rest = rest[:i+1]
		}
		found[word+rest] = true
	}
	return plain(slices.Sorted(maps.Keys(found))...)
}
