// SPDX-License-Identifier: Apache-2.0

// Command release-helper prints the licences of the modules linked into programs, which have to be distributed with them. It
// reads the list of modules from the programs and the licences from the module cache. scripts/release.sh calls it in the top
// directory of the repository:
//
//	release-helper PROGRAM... >LICENSES
package main

import (
	"bytes"
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("release-helper: ")
	if len(os.Args) < 2 {
		log.Fatal("usage: release-helper PROGRAM...")
	}
	modules, err := linked(os.Args[1:])
	if err != nil {
		log.Fatal(err)
	}
	if _, err := os.Stdout.WriteString(licences(modules)); err != nil {
		log.Fatal(err)
	}
}

// module is a module linked into a program.
type module struct {
	Path, Version, Dir string
	files              []file // sorted by name
}

// file is a text that has to be distributed with the module.
type file struct{ name, text string }

// standardLibrary is Go's own packages.
const standardLibrary = "stdlib"

// linked returns the modules of all programs, with their licences, sorted by path.
func linked(programs []string) ([]module, error) {
	var keys []string
	for _, p := range programs {
		info, err := buildinfo.ReadFile(p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
		if info.GoVersion != runtime.Version() {
			return nil, fmt.Errorf("%s is built with %s, but this program with %s", p, info.GoVersion, runtime.Version())
		}
		for _, d := range info.Deps {
			if d.Replace != nil {
				return nil, fmt.Errorf("%s: %s is replaced, so the build cannot be reproduced", p, d.Path)
			}
			keys = append(keys, d.Path+"@"+d.Version)
		}
	}
	slices.Sort(keys)
	out, err := exec.Command("go", append([]string{"mod", "download", "-json"}, slices.Compact(keys)...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("go mod download: %w: %s", err, out)
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOROOT: %w", err)
	}
	modules := []module{{Path: standardLibrary, Version: runtime.Version(), Dir: strings.TrimSpace(string(root))}}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var m module
		if err := dec.Decode(&m); err == io.EOF {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go mod download: %w", err)
		}
		modules = append(modules, m)
	}
	slices.SortFunc(modules, func(a, b module) int { return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Version, b.Version)) })
	for i := range modules {
		if err := modules[i].readLicences(); err != nil {
			return nil, err
		}
	}
	return modules, nil
}

// readLicences reads the licences of a module from its directory.
func (m *module) readLicences() error {
	entries, err := os.ReadDir(m.Dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		stem, _, _ := strings.Cut(strings.ToUpper(e.Name()), ".")
		if e.IsDir() || !slices.Contains([]string{"LICENSE", "LICENCE", "COPYING", "NOTICE", "PATENTS"}, stem) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(m.Dir, e.Name()))
		if err != nil {
			return err
		}
		m.files = append(m.files, file{e.Name(), strings.ReplaceAll(string(data), "\r\n", "\n")})
	}
	if len(m.files) == 0 {
		return fmt.Errorf("%s@%s: no licence in %s", m.Path, m.Version, m.Dir)
	}
	return nil
}

// licences returns the texts of all modules.
func licences(modules []module) string {
	var b strings.Builder
	b.WriteString("btfgen contains these modules. Their licences follow.\n")
	for _, m := range modules {
		fmt.Fprintf(&b, "\n%s\n%s %s\n", strings.Repeat("=", 78), m.Path, m.Version)
		for _, f := range m.files {
			fmt.Fprintf(&b, "\n%s:\n\n%s\n", f.name, strings.TrimSpace(f.text))
		}
	}
	return b.String()
}
