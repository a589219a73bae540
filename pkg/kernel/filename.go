// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"path"
	"strings"
)

// FileSuffix is the suffix of files with a kernel's BTF.
const FileSuffix = ".btf"

// FileName returns the path of a kernel's BTF in a tree with BTFHub's layout, with
// slashes: "ID/VERSION_ID/ARCH/RELEASE.btf", without a level for an empty VERSION_ID.
// For a key that is not Known it is "RELEASE.btf".
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
	if k.Release == "" {
		return Key{}, fmt.Errorf("%s: name has no release", name)
	}
	if err := k.Validate(); err != nil {
		return Key{}, fmt.Errorf("%s: %w", name, err)
	}
	return k, nil
}
