// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"path"
	"strings"
)

// FileSuffix ends the names of files with a kernel's BTF.
const FileSuffix = ".btf"

// FileName returns where a kernel's BTF stands in a tree with BTFHub's layout:
// "ID/VERSION_ID/ARCH/RELEASE.btf", without the level of a missing VERSION_ID. Of a
// key that is not Known only the release counts.
func (k Key) FileName() string {
	if !k.Known() {
		return k.Release + FileSuffix
	}
	return path.Join(k.ID, k.VersionID, k.Arch, k.Release+FileSuffix)
}

// ParseFileName is the inverse of FileName. Names have slashes:
// "ID/VERSION_ID/ARCH/RELEASE.btf", "ID/ARCH/RELEASE.btf" with an architecture
// that is known, or "RELEASE.btf". Errors begin with the name.
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
