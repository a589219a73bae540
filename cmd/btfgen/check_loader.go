// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/buildinfo"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/check/rule"
)

// autoLoader is the value of --loader that leaves the loader to what the objects show.
const autoLoader = "auto"

// bpf2goName matches the names of objects that bpf2go writes, and no others: tracer_bpfel.o, tracer_x86_bpfel.o.
var bpf2goName = regexp.MustCompile(`_bpfe[lb](_[a-z0-9]+)?\.o$`)

// visibleLoaders returns the loader of each object. The program that embeds the object shows it, or the name that a tool gave the file, or
// the project in the working directory if the object is below it. Otherwise it is libbpf.
func visibleLoaders(c *cli.Context, objs *programs) (loaders []rule.Loader) {
	known := make(map[string]rule.Loader) // keyed by file
	for i := range objs.list {
		file := objs.files[i]
		l, ok := known[file]
		if !ok {
			l = loaderOf(file)
			known[file] = l
			if found(c).verbose && l != rule.Libbpf {
				infof(c, "btfgen: %s is judged for %s", filepath.Base(file), l)
			}
		}
		loaders = append(loaders, l)
	}
	return loaders
}

// loaderOf returns the loader of a file with objects.
func loaderOf(file string) rule.Loader {
	if bpf2goName.MatchString(filepath.Base(file)) {
		return rule.EbpfGo
	}
	if l := loaderOfProgram(file); l != "" {
		return l
	}
	if filepath.IsLocal(file) {
		if l := projectLoader(); l != "" && l != rule.Aya { // aya is judged alone, so only if --loader names it
			return l
		}
	}
	return rule.Libbpf
}

// loaderModules are the Go modules that load objects.
var loaderModules = map[string]rule.Loader{
	"github.com/cilium/ebpf":           rule.EbpfGo,
	"github.com/aquasecurity/libbpfgo": rule.Libbpf,
}

// loaderOfProgram returns the loader of a Go program, as its list of modules shows it, or "".
func loaderOfProgram(file string) rule.Loader {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	if s, err := f.Stat(); err != nil || !s.Mode().IsRegular() {
		return ""
	}
	info, err := buildinfo.Read(f)
	if err != nil {
		return ""
	}
	for _, m := range info.Deps {
		if l := loaderModules[m.Path]; l != "" {
			return l
		}
	}
	return ""
}

// projectLoader returns the loader that files of the working directory show, or "".
func projectLoader() rule.Loader {
	entries, err := os.ReadDir(".")
	if err != nil {
		return ""
	}
	var files []string
	for _, e := range entries {
		if e.Type().IsRegular() && isLoaderSign(e.Name()) && !strings.HasPrefix(e.Name(), ".") {
			files = append(files, e.Name())
		}
	}
	slices.Sort(files)
	var p project
	if p.guessLoader(files) != nil {
		return ""
	}
	return p.Loader
}
