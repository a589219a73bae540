// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path"
	"path/filepath"
	"regexp"
	"sync"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/limits"
)

// loaderSign shows which loader a project uses. A weak one only mentions a name, and counts if there is no other.
type loaderSign struct {
	file   string         // pattern of the file's name
	text   *regexp.Regexp // matches the file's text; nil for any text
	loader rule.Loader
	weak   bool
}

var loaderSigns = sync.OnceValue(func() []loaderSign {
	genSkeleton, namesLibbpf := regexp.MustCompile(`\bgen\s+skeleton\b`), regexp.MustCompile(`\blibbpf\b|-lbpf\b`)
	return []loaderSign{
		{"*.skel.h", nil, rule.Libbpf, false},
		// An indirect requirement has a comment behind it, and does not match.
		{"go.mod", regexp.MustCompile(`(?m)^\s*(?:require\s+)?github\.com/cilium/ebpf\s+v[^/\s]*\s*$`), rule.EbpfGo, false},
		{"go.mod", regexp.MustCompile(`(?m)^\s*(?:require\s+)?github\.com/aquasecurity/libbpfgo\s+v[^/\s]*\s*$`), rule.Libbpf, false},
		{"Cargo.toml", regexp.MustCompile(`(?m)^\s*aya\s*=|^\s*\[(?:workspace\.)?dependencies\.aya\]`), rule.Aya, false},
		{"Cargo.toml", regexp.MustCompile(`(?m)^\s*libbpf-(?:rs|cargo|sys)\s*=`), rule.Libbpf, false},
		{"Makefile", genSkeleton, rule.Libbpf, false},
		{"meson.build", genSkeleton, rule.Libbpf, false},
		{"CMakeLists.txt", genSkeleton, rule.Libbpf, false},
		{"Makefile", namesLibbpf, rule.Libbpf, true},
		{"meson.build", namesLibbpf, rule.Libbpf, true},
		{"CMakeLists.txt", namesLibbpf, rule.Libbpf, true},
	}
})

// isLoaderSign reports whether a file may show which loader a project uses.
func isLoaderSign(name string) bool {
	for _, s := range loaderSigns() {
		if ok, _ := path.Match(s.file, name); ok {
			return true
		}
	}
	return false
}

// guessLoader guesses from files which loader the project uses. It is unknown if they show none or several.
func (p *project) guessLoader(files []string) error {
	// found has the first file that shows each loader, by whether the sign is weak.
	found := map[bool]map[rule.Loader]string{false: {}, true: {}}
	for _, name := range files {
		var data []byte
		for _, s := range loaderSigns() {
			if ok, _ := path.Match(s.file, filepath.Base(name)); !ok {
				continue
			}
			if s.text != nil && data == nil {
				var err error
				if data, err = readRegular(name, limits.SourceBytes); err != nil {
					return err
				}
			}
			if at := found[s.weak]; at[s.loader] == "" && (s.text == nil || s.text.Match(data)) {
				at[s.loader] = name
			}
		}
	}
	at := found[false]
	if len(at) == 0 {
		at = found[true]
	}
	for loader, name := range at {
		if len(at) == 1 {
			p.Loader, p.LoaderFrom = loader, name
		}
	}
	return nil
}
