// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"runtime/debug"
	"strings"
)

// version is what packagers set: -ldflags "-X main.version=v1.2.3". Empty otherwise.
var version string

// archived is the tag, the commit and its time in a source tarball, where git archive
// replaces the placeholders (.gitattributes says so). Elsewhere it begins with $.
// scripts/release.sh reads it, too.
//
//go:embed version.txt
var archived string

// unversioned is the version of a build that nothing tells one of.
const unversioned = "(devel)"

// buildVersion is the version of this program.
func buildVersion() string {
	bi, _ := debug.ReadBuildInfo()
	return versionFrom(version, bi, archived)
}

// versionFrom takes what was set when linking, else the module's version as Go
// recorded it, else the tag of a tarball or, without one, its commit.
func versionFrom(linked string, bi *debug.BuildInfo, archived string) string {
	if linked != "" {
		return linked
	}
	if bi != nil && bi.Main.Version != "" && bi.Main.Version != unversioned {
		return bi.Main.Version
	}
	if f := strings.Fields(archived); len(f) > 0 && !strings.HasPrefix(archived, "$") {
		return f[0]
	}
	return unversioned
}

// distinct reports whether builds of different code have different versions. The
// version of changed sources is that of the commit before the change, "+dirty".
func distinct(version string) bool {
	return version != "" && version != unversioned && !strings.HasSuffix(version, "+dirty")
}
