// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"strconv"
	"strings"

	"github.com/btfgen/btfgen/internal/check/facts"
	"github.com/btfgen/btfgen/internal/check/interp"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Release is a version of Linux.
type Release = facts.Release

// Linux returns a release of Linux.
func Linux(major, minor uint64) Release { return facts.Linux(major, minor) }

// VersionOf is LINUX_KERNEL_VERSION on a kernel. Debian's and Ubuntu's releases
// keep their first patch level in the name, 5.10.0 for 5.10.218, and names that begin with a word may have none.
func VersionOf(key kernel.Key) interp.Number {
	v := interp.Number{Unknown: 0xffffffff}
	var n [3]uint64
	for i, s := range strings.SplitN(key.Linux(), ".", 3) {
		digits := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
		if digits < 0 {
			digits = len(s)
		}
		x, err := strconv.ParseUint(s[:digits], 10, 16)
		if err != nil {
			if i < 2 {
				return v
			}
			x = 0
		}
		n[i] = x
	}
	if n[0] == 0 {
		return v
	}
	out := interp.Number{V: n[0]<<16 | n[1]<<8 | min(n[2], 255)}
	if id := kernel.CanonicalID(key.ID); n[2] == 0 && (id == "debian" || id == "ubuntu" || key.Linux() != key.Release) {
		out.Unknown = 0xff
	}
	return out
}

// ReleaseOf returns the release of Linux that a kernel's name shows, 0 if it shows none.
func ReleaseOf(key kernel.Key) Release { return Release(VersionOf(key).V) &^ 0xff }
