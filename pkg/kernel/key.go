// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
)

// Key identifies a kernel: the distribution as in /etc/os-release, the machine and
// the release as "uname -r" prints it. An unknown component is empty.
//
// A key keeps the spelling that it was made with, so that "amd64" stays "amd64" in
// an output path. Keys that differ only in spelling identify the same kernel: their
// Canonical keys are equal, and Compare returns 0.
type Key struct {
	ID        string // distribution, os-release's ID: "debian"
	VersionID string // its version, os-release's VERSION_ID: "12"; rolling distributions have none
	Arch      string // machine: "x86_64"
	Release   string // kernel release, uname -r: "6.1.0-47-amd64"
}

// absent stands for an empty component in the text form of a key.
const absent = "-"

// Known reports whether the key has ID, Arch and Release. VersionID may be missing,
// since rolling distributions have none.
func (k Key) Known() bool { return k.ID != "" && k.Arch != "" && k.Release != "" }

// String returns "ID/VERSION_ID/ARCH/RELEASE", with "-" for each empty component.
func (k Key) String() string {
	parts := [...]string{k.ID, k.VersionID, k.Arch, k.Release}
	for i, p := range parts {
		if p == "" {
			parts[i] = absent
		}
	}
	return strings.Join(parts[:], "/")
}

// ParseKey parses the result of [Key.String]; a component "-" is empty. The error is
// that of [Key.Validate], or says that there are not four components.
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

// Validate returns an error if a component is "-", which stands for an empty one, or
// if [CheckName] refuses it, so that keys are safe in paths. Empty components are valid.
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

// maxName is the longest name in bytes, which is what file systems take.
const maxName = 255

// CheckName returns an error if a name that comes from outside cannot be one level of a path: the parts of a key, the names of modules,
// and each level of the name of a file that an archive or a list has. A name that passes never leads out of its folder.
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

// Compare orders canonical keys by ID, VersionID, Arch and Release, versions and
// releases as [CompareVersions] does. It returns 0 only if they are equal.
func (k Key) Compare(o Key) int {
	k, o = k.Canonical(), o.Canonical()
	return cmp.Or(
		cmp.Compare(k.ID, o.ID),
		CompareVersions(k.VersionID, o.VersionID),
		cmp.Compare(k.Arch, o.Arch),
		CompareVersions(k.Release, o.Release),
	)
}

// arches maps each spelling of an architecture to the one BTFHub uses, or uname -m where BTFHub
// has none. Distributions' packages, uname and Go each have their own.
var arches = map[string]string{
	"x86_64": "x86_64", "amd64": "x86_64", "x86": "x86_64", "x86-64": "x86_64",
	"arm64": "arm64", "aarch64": "arm64",
	"arm": "arm", "armhf": "arm", "armel": "arm", "armhfp": "arm", "armv6l": "arm", "armv7": "arm",
	"armv7l": "arm", "armv7hl": "arm", "armv8l": "arm",
	"i386": "i386", "i486": "i386", "i586": "i386", "i686": "i386", "386": "i386",
	"ppc64le": "ppc64le", "ppc64el": "ppc64le", "ppc64": "ppc64",
	"s390x":   "s390x",
	"riscv64": "riscv64", "riscv": "riscv64",
	"loongarch64": "loongarch64", "loong64": "loongarch64",
	"mips": "mips", "mipsel": "mipsel", "mips64": "mips64", "mips64el": "mips64el",
	"mips64le": "mips64el",
	"sparc64":  "sparc64",
}

// KnownArch reports whether arch is a spelling that [CanonicalArch] knows.
func KnownArch(arch string) bool {
	_, ok := arches[arch]
	return ok
}

// CanonicalArch returns BTFHub's spelling of an architecture ("x86_64", "arm64") for
// the spellings of Go, uname and distributions ("amd64", "aarch64"). It returns an
// unknown one unchanged.
func CanonicalArch(arch string) string {
	if a, ok := arches[arch]; ok {
		return a
	}
	return arch
}

// CanonicalID returns the ID in os-release for another name of a distribution:
// "amzn" for "amazon". It returns any other name with its ASCII letters in lower
// case.
func CanonicalID(id string) string {
	b := []byte(id)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c - 'A' + 'a'
		}
	}
	id = string(b)
	switch id {
	case "amazon":
		return "amzn"
	case "redhat":
		return "rhel"
	case "oracle":
		return "ol"
	case "suse":
		return "sles"
	case "opensuse":
		return "opensuse-leap"
	}
	return id
}

// CompareVersions orders kernel releases and distribution versions: numbers by
// value, and the text between them by bytes, so 6.9 < 6.10 < 6.10.1. A pre-release
// ("~rc1", "-rc1") comes before its release. It returns 0 only for equal strings.
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
	ra, rb := runRank(a), runRank(b)
	if ra != rb {
		return cmp.Compare(ra, rb)
	}
	if ra == rankNumber {
		a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	}
	return cmp.Compare(a, b)
}

// The order of what may come next in a version.
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
