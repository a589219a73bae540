// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"runtime/debug"
	"strings"
)

// version is set by packagers with -ldflags "-X main.version=v1.2.3".
var version string

// archived has the tag, the commit and its time in a source tarball, where git archive replaces the placeholders as
// .gitattributes specifies. Elsewhere it begins with $. scripts/release.sh reads it, too.
//
//go:embed version.txt
var archived string

// unversioned is the version of a build without any version.
const unversioned = "(devel)"

func buildVersion() string {
	bi, _ := debug.ReadBuildInfo()
	return versionFrom(version, bi, archived)
}

// tool is the program that archives and manifests name as theirs.
func tool() string { return "btfgen " + buildVersion() }

// versionFrom returns the version that the linker set, else that of the Go module, else the tag or commit of a tarball.
func versionFrom(linked string, bi *debug.BuildInfo, archived string) string {
	if linked != "" {
		return linked
	}
	if bi != nil {
		m := &bi.Main
		if m.Replace != nil { // a folder that replaces the module has no version
			m = m.Replace
		}
		if m.Version != "" && m.Version != unversioned {
			return m.Version
		}
	}
	if f := strings.Fields(archived); len(f) > 0 && !strings.HasPrefix(archived, "$") {
		return f[0]
	}
	return unversioned
}

// distinct reports whether other code has another version. Modified sources have the version of their last commit with
// "+dirty" or ".dirty", and sources outside a repository may have the pseudo-version of the year 1.
func distinct(version string) bool {
	return version != "" && version != unversioned &&
		!strings.HasSuffix(version, "dirty") && !strings.HasPrefix(version, "v0.0.0-00010101")
}
