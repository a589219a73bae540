// SPDX-License-Identifier: Apache-2.0

// Command release-helper writes what a release says of its contents: an SPDX document, and the licences of the modules
// that are linked into its programs. It asks the programs which modules those are, and reads their licences in the
// module cache. scripts/release.sh calls it, in the top directory of the repository:
//
//	release-helper -version v1.2.3 -copyright FILE -o DIR NAME=PROGRAM...
//
// NAME is the program's path within the release, FILE the copyright of the sources. In DIR it makes
//
//	btfgen.spdx.json  SPDX 2.3: the programs with their hashes, and which modules each of them has
//	LICENSES          the licences of the modules, word for word
//	copyright         FILE, and the same for Debian (copyright-format/1.0)
//
// SOURCE_DATE_EPOCH is the time of creation that the SPDX document has.
package main

import (
	"debug/buildinfo"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("release-helper: ")
	version := flag.String("version", "", "the release's `VERSION`")
	dir := flag.String("o", "", "write into `DIR`")
	sources := flag.String("copyright", "", "`FILE` has the copyright of the sources")
	flag.Parse()
	if *version == "" || *dir == "" || *sources == "" || flag.NArg() == 0 {
		log.Fatal("usage: release-helper -version VERSION -copyright FILE -o DIR NAME=PROGRAM...")
	}
	if err := run(*version, *dir, *sources, flag.Args()); err != nil {
		log.Fatal(err)
	}
}

func run(version, dir, sources string, args []string) error {
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	ours, err := os.ReadFile(sources)
	if err != nil {
		return err
	}
	rel := &release{version: version, created: time.Unix(seconds, 0).UTC(), sources: string(ours)}
	for _, a := range args {
		name, path, ok := strings.Cut(a, "=")
		if !ok {
			return fmt.Errorf("%s: want NAME=PROGRAM", a)
		}
		p, err := readProgram(name, path)
		if err != nil {
			return err
		}
		rel.programs = append(rel.programs, p)
	}
	if rel.modules, err = linked(rel.programs); err != nil {
		return err
	}
	doc, err := rel.spdx()
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{
		"btfgen.spdx.json": doc,
		"LICENSES":         []byte(rel.licences()),
		"copyright":        []byte(rel.copyright()),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// release is what a release consists of.
type release struct {
	version  string // with its v
	created  time.Time
	sources  string // the copyright of the sources
	programs []*program
	modules  []*module // in order of their paths
}

// program is one of the release's.
type program struct {
	name    string   // its path within the release
	data    []byte   // all of it
	modules []string // keys of its modules
}

// module is what a program is linked from.
type module struct {
	path, version string
	licences      []string // SPDX identifiers
	copyright     []string // lines of the licence that say whose it is
	files         []file
}

// file is a text that has to go with what is made from a module.
type file struct{ name, text string }

func (m *module) key() string { return m.path + "@" + m.version }

// standardLibrary is what SPDX documents and lists of vulnerabilities call Go's own packages.
const standardLibrary = "stdlib"

// readProgram reads a program that Go has built, of our module.
func readProgram(name, path string) (*program, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	p := &program{name: name, data: data, modules: []string{standardLibrary + "@" + info.GoVersion}}
	for _, d := range info.Deps {
		if d.Replace != nil {
			return nil, fmt.Errorf("%s: %s is replaced, so that nobody else could build it", path, d.Path)
		}
		p.modules = append(p.modules, d.Path+"@"+d.Version)
	}
	return p, nil
}

// linked returns all modules of programs, with their licences.
func linked(programs []*program) ([]*module, error) {
	var keys []string
	for _, p := range programs {
		keys = append(keys, p.modules...)
	}
	slices.Sort(keys)
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOROOT: %w", err)
	}
	var all []*module
	for _, k := range slices.Compact(keys) {
		path, version, _ := strings.Cut(k, "@")
		m := &module{path: path, version: version}
		dir := strings.TrimSpace(string(root))
		if path == standardLibrary {
			if runtime.Version() != version {
				return nil, fmt.Errorf("programs built with %s, and this one with %s", version, runtime.Version())
			}
		} else if dir, err = moduleDir(k); err != nil {
			return nil, err
		}
		if err := m.readLicences(dir); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// moduleDir returns where the module cache has a module.
func moduleDir(key string) (string, error) {
	out, err := exec.Command("go", "mod", "download", "-json", key).Output()
	if err != nil {
		return "", fmt.Errorf("go mod download %s: %w: %s", key, err, out)
	}
	var m struct{ Dir string }
	if err := json.Unmarshal(out, &m); err != nil {
		return "", fmt.Errorf("go mod download %s: %w", key, err)
	}
	if m.Dir == "" {
		return "", fmt.Errorf("go mod download %s: no directory", key)
	}
	return m.Dir, nil
}
