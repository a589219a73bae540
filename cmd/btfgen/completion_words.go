// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/job/bundle"
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

// selectorTerms returns what the last term of a selector can become.
func selectorTerms(keys []kernel.Key, term string) []candidate {
	if strings.Contains(term, "/") {
		return keyParts(keys, term)
	}
	found := make(map[string]bool)
	add := func(before, word string) {
		if word != "" {
			found[before+word] = true
		}
	}
	i := strings.IndexAny(term, "<>=!")
	if i < 0 {
		for _, k := range keys {
			add("", k.ID)
			add("", k.Arch)
		}
		return plain(slices.Sorted(maps.Keys(found))...)
	}
	name := strings.TrimSpace(term[:i])
	value := strings.TrimLeft(term[i:], "<>=!")
	before := strings.TrimSuffix(term, value)
	for _, k := range keys {
		value, ok := corpus.Component(k, cmp.Or(name, "release"))
		if !ok && k.ID == kernel.CanonicalID(name) {
			value, ok = k.VersionID, true
		}
		if !ok {
			continue
		}
		if _, err := corpus.ParseSelector(before + value); err == nil { // words have no order
			add(before, value)
		}
	}
	return plain(slices.SortedFunc(maps.Keys(found), kernel.CompareVersions)...)
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

// suffixes are those of the files that an option or argument names.
var suffixes = map[string][]string{
	"archive":  bundle.Suffixes,
	"archives": bundle.Suffixes,
	"baseline": {".json"},
	"config":   {".yaml", ".yml"},
	"reuse":    {".btfa"},
}

// completeFiles adds files with the suffixes of an option or argument, and directories. If there is no such file, or if a shell would
// have to quote a name, the shell completes all files.
func (c *completion) completeFiles(name, before, word string) {
	c.files = anyFile
	dir, base := filepath.Split(word)
	entries, err := os.ReadDir(filepath.Clean(dir))
	if err != nil || suffixes[name] == nil {
		return
	}
	var files, dirs []candidate
	for _, e := range entries {
		n := e.Name()
		if !strings.HasPrefix(n, base) || base == "" && n[0] == '.' {
			continue
		}
		fi, err := os.Stat(filepath.Join(dir, n))
		suffixed := slices.ContainsFunc(suffixes[name], func(s string) bool { return strings.HasSuffix(n, s) })
		switch {
		case err != nil:
		case strings.ContainsFunc(n, func(r rune) bool { return !isLetterOrDigit(r) && !strings.ContainsRune("._-+@%", r) }):
			return
		case fi.IsDir():
			dirs = append(dirs, candidate{text: before + dir + n + "/"})
		case suffixed:
			files = append(files, candidate{text: before + dir + n})
		}
	}
	if len(files) > 0 {
		c.files, c.words = noFiles, append(files, dirs...)
	}
}

func isLetterOrDigit(r rune) bool {
	return '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}
