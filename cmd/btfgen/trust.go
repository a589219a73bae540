// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/btfgen/btfgen/internal/output"
)

// configVariable is a variable of the environment with the name of a file, as --config has it.
const configVariable = "BTFGEN_CONFIG"

// findConfig returns the path of the file with options, or "", and whether the user named it: by --config or in the environment. Otherwise
// it is the nearest btfgen.yaml in the working directory and its parents, up to the root of a repository. A parent in which everybody
// may create files, such as /tmp, ends the search.
func (l *commandLine) findConfig() (path string, named bool) {
	if path, named = l.value("config"); named {
		return path, true
	}
	if path, named = os.LookupEnv(configVariable); named {
		return path, true
	}
	for dir := "."; ; dir = filepath.Join(dir, "..") {
		here, err := os.Stat(dir)
		if err != nil || dir != "." && here.Mode().Perm()&0o002 != 0 {
			return "", false
		}
		path := filepath.Join(dir, configFile)
		if _, err := os.Lstat(path); err == nil {
			return path, false
		}
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return "", false
		}
		if parent, err := os.Stat(filepath.Join(dir, "..")); err != nil || os.SameFile(here, parent) {
			return "", false
		}
	}
}

// checkLinked returns an error if a file that was found is a link to a file that does not belong to the checkout. Messages about its content
// would show private files in the logs of a pipeline.
func checkLinked(path string) error {
	if fi, err := os.Lstat(path); err != nil || fi.Mode()&fs.ModeSymlink == 0 {
		return nil
	}
	err := output.Inside(filepath.Dir(path), filepath.Base(path))
	switch {
	case err == nil:
		return nil
	case errors.Is(err, output.ErrOutside):
		return fmt.Errorf("%s: is a link that leads outside its folder; to read it, use --config %s", path, quoted(path))
	}
	return fmt.Errorf("%s: is a link to a file that %w; to read it, use --config %s", path, err, quoted(path))
}

// power is what a setting can do beyond reading files.
type power string

const (
	writes power = "writes" // writes a file or folder
	starts power = "starts programs or uses the network"
)

// powers has the keys that need the user's word in a file that was found: those that start programs or use the network, for all commands or
// for one, and outputs outside the file's folder.
var powers = map[string]power{
	"output":              writes,
	"manifest":            writes,
	"packages":            writes,
	"summary":             writes,
	"boot":                starts,
	"command":             starts,
	"btfgen":              starts,
	"catalogue":           starts,
	"mirror":              starts,
	"corpus fetch series": starts,
	"reference":           starts, // used by push and pull
	"corpus push file":    starts,
	"archive push file":   starts,
	"plain-http":          starts, // no effect without a reference
	"corpus import btf":   starts, // runs pahole on kernels with DWARF
}

// powerOf returns the power of a command's key.
func powerOf(command, key string) power {
	if p, ok := powers[command+" "+key]; ok {
		return p
	}
	return powers[key]
}

// refuse returns an error if a value, whose text in the file is text, needs the user's word.
func (r *configReader) refuse(k key, text string, o *option) error {
	why := ""
	switch powerOf(r.line, k.name) {
	case starts:
		why = string(starts)
	case writes:
		if err := output.Inside(filepath.Dir(r.path), text); err != nil {
			why = text + " " + err.Error()
			if errors.Is(err, output.ErrOutside) {
				why += " of the file"
			}
		}
	}
	if why == "" {
		return nil
	}
	typed := quoted(o.value)
	argument := slices.ContainsFunc(argumentKeys(r.command), func(a key) bool { return a.name == k.name })
	switch {
	case !argument && o.value == "true": // a switch
		typed = "--" + k.name
	case !argument:
		typed = "--" + k.name + " " + typed
	}
	return fmt.Errorf("%s: %s: %s: type %s, or trust the file with --config %s", o.from, k.name, why, typed, quoted(r.path))
}
