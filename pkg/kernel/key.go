// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"strings"
)

// Key identifies a kernel. An unknown component is empty. A key keeps the spelling that
// it was made with, so "amd64" stays "amd64" in an output path. Keys that differ only in
// spelling identify the same kernel: their Canonical keys are equal, and Compare returns 0.
type Key struct {
	ID        string // distribution, os-release's ID: "debian"
	VersionID string // its version, os-release's VERSION_ID: "12"; rolling distributions have none
	Arch      string // machine: "x86_64"
	Release   string // kernel release, uname -r: "6.1.0-47-amd64"
}

// absent is the text of an empty component.
const absent = "-"

// Known reports whether the key has ID, Arch and Release. Rolling distributions have no
// VersionID.
func (k Key) Known() bool { return k.ID != "" && k.Arch != "" && k.Release != "" }

// String returns "ID/VERSION_ID/ARCH/RELEASE", with "-" for each empty component.
func (k Key) String() string {
	return cmp.Or(k.ID, absent) + "/" + cmp.Or(k.VersionID, absent) + "/" + cmp.Or(k.Arch, absent) + "/" + cmp.Or(k.Release, absent)
}

// ParseKey parses the result of [Key.String]; a component "-" is empty. The error is
// that of [CheckName], or says that there are not four components.
func ParseKey(s string) (Key, error) {
	parts := strings.Split(s, "/")
	if len(parts) != 4 {
		return Key{}, fmt.Errorf("kernel %q: want ID/VERSION_ID/ARCH/RELEASE", s)
	}
	for i, p := range parts {
		if err := CheckName(p); err != nil {
			return Key{}, fmt.Errorf("kernel %q: %w", s, err)
		}
		if p == absent {
			parts[i] = ""
		}
	}
	return Key{ID: parts[0], VersionID: parts[1], Arch: parts[2], Release: parts[3]}, nil
}

// Validate returns an error if a component is "-", the text of an empty one, or if
// [CheckName] refuses it. Valid keys are safe in paths. Empty components are valid.
func (k Key) Validate() error {
	for _, p := range [...]string{k.ID, k.VersionID, k.Arch, k.Release} {
		if p == absent {
			return fmt.Errorf("%q is not a name", p)
		}
		if p == "" {
			continue
		}
		if err := CheckName(p); err != nil {
			return err
		}
	}
	return nil
}

// maxName is the longest name that file systems accept, in bytes.
const maxName = 255

// CheckName returns an error if a name from outside cannot be one level of a path: if it
// is empty, "." or "..", or has more than 255 bytes, a slash, a backslash or a control
// character. A name that passes never leads out of its folder.
func CheckName(name string) error {
	switch {
	case name == "":
		return errors.New("empty name")
	case name == "." || name == "..":
		return fmt.Errorf("%q is not a name", name)
	case len(name) > maxName:
		return fmt.Errorf("name %q…: longer than %d bytes", name[:32], maxName)
	}
	for i := 0; i < len(name); i++ {
		if c := name[i]; c < ' ' || c == 0x7f || c == '/' || c == '\\' {
			return fmt.Errorf("name %q: bad character", name)
		}
	}
	return nil
}

// Canonical returns the key with the spellings of [CanonicalID] and [CanonicalArch].
// Equal canonical keys identify the same kernel.
func (k Key) Canonical() Key {
	k.ID, k.Arch = CanonicalID(k.ID), CanonicalArch(k.Arch)
	return k
}

// Compare compares canonical keys by ID, VersionID, Arch and Release. It compares
// versions and releases as [CompareVersions] does.
func (k Key) Compare(o Key) int {
	k, o = k.Canonical(), o.Canonical()
	return cmp.Or(
		cmp.Compare(k.ID, o.ID),
		CompareVersions(k.VersionID, o.VersionID),
		cmp.Compare(k.Arch, o.Arch),
		CompareVersions(k.Release, o.Release),
	)
}

// KnownArch reports whether [CanonicalArch] knows a spelling.
func KnownArch(arch string) bool { return arches[arch] != "" }

// CanonicalArch returns BTFHub's spelling of an architecture ("x86_64", "arm64") for
// the spellings of Go, uname and distributions ("amd64", "aarch64"). It returns an
// unknown one unchanged.
func CanonicalArch(arch string) string { return cmp.Or(arches[arch], arch) }

// CanonicalID returns the ID in os-release for another name of a distribution: "amzn"
// for "amazon". It returns any other name with its ASCII letters in lower case.
func CanonicalID(id string) string {
	id = lower(id)
	return cmp.Or(ids[id], id)
}

// lower returns a text with its ASCII letters in lower case.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c - 'A' + 'a'
		}
	}
	return string(b)
}

// Linux returns the release of Linux that Release shows: Release itself if it begins with a digit, else what begins
// with two numbers and a dot between them, such as "5.10-2021-09-arm64" for "a12-5.10-2021-09-arm64", as public
// collections name builds of Android. It returns "" if there is none.
func (k Key) Linux() string {
	for i := range len(k.Release) {
		if !isDigit(k.Release[i]) {
			continue
		}
		if i == 0 {
			return k.Release
		}
		if c := k.Release[i-1]; c != '-' && c != '_' {
			continue
		}
		_, rest := nextRun(k.Release[i:])
		if len(rest) > 1 && rest[0] == '.' && isDigit(rest[1]) {
			return k.Release[i:]
		}
	}
	return ""
}

// FileSuffix is the suffix of BTF files.
const FileSuffix = ".btf"

// FileName returns the slash-separated path of a kernel's BTF in a tree with BTFHub's
// layout: "ID/VERSION_ID/ARCH/RELEASE.btf", without a level for an empty VERSION_ID, or
// "RELEASE.btf" for a key that is not Known.
func (k Key) FileName() string {
	if !k.Known() {
		return k.Release + FileSuffix
	}
	return path.Join(k.ID, k.VersionID, k.Arch, k.Release+FileSuffix)
}

// ParseFileName parses the result of [Key.FileName]: "ID/VERSION_ID/ARCH/RELEASE.btf",
// "ID/ARCH/RELEASE.btf" with a [KnownArch], or "RELEASE.btf". The error begins with
// the name.
func ParseFileName(name string) (Key, error) {
	p := strings.Split(strings.TrimSuffix(name, FileSuffix), "/")
	var k Key
	switch n := len(p); {
	case n == 4:
		k = Key{ID: p[0], VersionID: p[1], Arch: p[2], Release: p[3]}
	case n == 3 && KnownArch(p[1]):
		k = Key{ID: p[0], Arch: p[1], Release: p[2]}
	case n == 1:
		k = Key{Release: p[0]}
	default:
		return k, fmt.Errorf("%s: name is not ID/VERSION_ID/ARCH/RELEASE%s", name, FileSuffix)
	}
	err := k.Validate()
	if k.Release == "" {
		err = errors.New("name has no release")
	}
	if err != nil {
		return Key{}, fmt.Errorf("%s: %w", name, err)
	}
	return k, nil
}

// CompareVersions compares kernel releases or distribution versions: numbers by value,
// and the text between them by bytes, so 6.9 < 6.10 < 6.10.1. A pre-release ("~rc1",
// "-rc1") comes before its release. It returns 0 only for equal strings.
func CompareVersions(a, b string) int {
	x, y := a, b
	for x != "" || y != "" {
		var p, q string
		p, x = nextRun(x)
		q, y = nextRun(y)
		if c := compareRuns(p, q); c != 0 {
			return c
		}
	}
	return cmp.Compare(a, b) // 01 and 1
}

// nextRun cuts the leading run of digits, or of anything else, off s.
func nextRun(s string) (run, rest string) {
	i := 0
	for i < len(s) && isDigit(s[i]) == isDigit(s[0]) {
		i++
	}
	return s[:i], s[i:]
}

func compareRuns(a, b string) int {
	if c := cmp.Compare(runRank(a), runRank(b)); c != 0 {
		return c
	}
	if runRank(a) == rankNumber {
		a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	}
	return cmp.Compare(a, b)
}

// The order of runs, and of the end, in a version.
const (
	rankPre = iota
	rankEnd
	rankText
	rankNumber
)

func runRank(run string) int {
	switch {
	case run == "":
		return rankEnd
	case isDigit(run[0]):
		return rankNumber
	case run[0] == '~' || run == "-rc":
		return rankPre
	}
	return rankText
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
