// SPDX-License-Identifier: Apache-2.0

// Command release-helper writes the SPDX document of a release and the licences of the modules linked into its programs. It reads the
// list of modules from the programs and the licences from the module cache. scripts/release.sh calls it in the top directory of
// the repository:
//
//	release-helper -version v1.2.3 -copyright FILE -o DIR NAME=PROGRAM...
//
// NAME is the program's path within the release, FILE the copyright of the sources. It writes to DIR:
//
//	btfgen.spdx.json  SPDX 2.3: the programs with their hashes and modules
//	LICENSES          the texts of the modules' licences
//	copyright         FILE and the licences, for Debian (copyright-format/1.0)
//
// SOURCE_DATE_EPOCH is the creation time of the SPDX document.
package main

import (
	"cmp"
	"crypto/sha1"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
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

// release is the content of a release.
type release struct {
	version  string // with its v
	created  time.Time
	sources  string // the copyright of the sources
	programs []*program
	modules  []*module // sorted by path
}

// program is a program of the release.
type program struct {
	name    string // its path within the release
	data    []byte
	modules []string // keys of its modules
}

// module is a module linked into a program.
type module struct {
	path, version string
	licences      []string // SPDX identifiers
	copyright     []string // copyright lines of the licences
	files         []file
}

// file is a text that has to be distributed with the module.
type file struct{ name, text string }

func (m *module) key() string { return m.path + "@" + m.version }

// standardLibrary is the name of Go's own packages in SPDX documents and databases of vulnerabilities.
const standardLibrary = "stdlib"

// readProgram reads a program built by Go.
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
			return nil, fmt.Errorf("%s: %s is replaced, so the build cannot be reproduced", path, d.Path)
		}
		p.modules = append(p.modules, d.Path+"@"+d.Version)
	}
	return p, nil
}

// linked returns the modules of all programs, with their licences.
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
				return nil, fmt.Errorf("programs built with %s, but this one with %s", version, runtime.Version())
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

// moduleDir returns the directory of a module in the module cache.
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

const (
	spdxSelf    = "SPDXRef-DOCUMENT"
	spdxUnknown = "NOASSERTION"
	spdxMain    = "SPDXRef-Package-btfgen"

	repository = "https://github.com/btfgen/btfgen"
	mainModule = "github.com/btfgen/btfgen"
	ourLicence = "Apache-2.0"
)

// fields is an object of an SPDX 2.3 document: https://spdx.github.io/spdx-spec/v2.3/
type fields map[string]any

// spdx returns the SPDX document of a release: the programs, and the modules linked into each.
func (r *release) spdx() ([]byte, error) {
	var packages, files, relationships []fields
	relate := func(element, how, related string) {
		relationships = append(relationships, fields{"spdxElementId": element, "relationshipType": how, "relatedSpdxElement": related})
	}
	add := func(id, path, version, download, licence, copyright string) {
		packages = append(packages, fields{
			"SPDXID": id, "name": path, "versionInfo": version, "downloadLocation": download, "filesAnalyzed": false,
			"licenseConcluded": licence, "licenseDeclared": licence, "copyrightText": copyright,
			"externalRefs": []fields{{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": packageURL(path, version)}},
		})
	}
	add(spdxMain, mainModule, r.version, "git+"+repository, ourLicence, "The btfgen authors")
	relate(spdxSelf, "DESCRIBES", spdxMain)
	for _, m := range r.modules {
		add(m.spdxID(), m.path, m.version, spdxUnknown, strings.Join(m.licences, " AND "), cmp.Or(strings.Join(m.copyright, "\n"), spdxUnknown))
	}
	all := sha256.New()
	for _, p := range r.programs {
		short, long := sha1.Sum(p.data), sha256.Sum256(p.data)
		all.Write(long[:])
		id := "SPDXRef-File-" + spdxName(p.name)
		files = append(files, fields{
			"SPDXID": id, "fileName": "./" + p.name, "fileTypes": []string{"BINARY"},
			"checksums": []fields{ // SPDX requires SHA-1
				{"algorithm": "SHA1", "checksumValue": hex.EncodeToString(short[:])},
				{"algorithm": "SHA256", "checksumValue": hex.EncodeToString(long[:])},
			},
			"licenseConcluded": spdxUnknown, "copyrightText": spdxUnknown,
		})
		relate(id, "GENERATED_FROM", spdxMain)
		for _, m := range r.modules {
			if slices.Contains(p.modules, m.key()) {
				relate(id, "STATIC_LINK", m.spdxID())
			}
		}
	}
	data, err := json.MarshalIndent(fields{
		"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": spdxSelf, "name": "btfgen-" + r.version,
		"documentNamespace": repository + "/spdx/" + r.version + "/" + hex.EncodeToString(all.Sum(nil)), // unique to these programs
		"creationInfo":      fields{"created": r.created.Format(time.RFC3339), "creators": []string{"Tool: btfgen-release-helper"}},
		"packages":          packages, "files": files, "relationships": relationships,
	}, "", "  ")
	return append(data, '\n'), err
}

func (m *module) spdxID() string { return "SPDXRef-Module-" + spdxName(m.key()) }

// spdxName replaces characters that SPDX identifiers cannot have.
func spdxName(name string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' {
			return c
		}
		return '-'
	}, name)
}

// packageURL returns the name of a module in databases of vulnerabilities.
func packageURL(path, version string) string {
	return "pkg:golang/" + strings.ReplaceAll(path, "+", "%2B") + "@" + strings.ReplaceAll(version, "+", "%2B")
}
