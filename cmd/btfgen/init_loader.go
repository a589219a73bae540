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
	strong, weak := make(map[rule.Loader]string), make(map[rule.Loader]string) // the first file that shows each loader
	for _, name := range files {
		signs, err := signsIn(name)
		if err != nil {
			return err
		}
		for _, s := range signs {
			at := strong
			if s.weak {
				at = weak
			}
			if at[s.loader] == "" {
				at[s.loader] = name
			}
		}
	}
	shown := strong
	if len(shown) == 0 {
		shown = weak
	}
	if len(shown) != 1 {
		return nil
	}
	for loader, name := range shown {
		p.Loader, p.LoaderFrom = loader, name
	}
	return nil
}

// signsIn returns the signs of loaders that a file has.
func signsIn(name string) (signs []loaderSign, err error) {
	var data []byte
	for _, s := range loaderSigns() {
		if ok, _ := path.Match(s.file, filepath.Base(name)); !ok {
			continue
		}
		if s.text != nil && data == nil {
			if data, err = readRegular(name, limits.SourceBytes); err != nil {
				return nil, err
			}
		}
		if s.text == nil || s.text.Match(data) {
			signs = append(signs, s)
		}
	}
	return signs, nil
}
