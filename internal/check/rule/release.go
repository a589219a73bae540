// SPDX-License-Identifier: Apache-2.0

package rule

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"github.com/btfgen/btfgen/internal/check/interp"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Release is a version of Linux, as LINUX_KERNEL_VERSION without the patch level.
type Release uint32

// Linux returns a release of Linux.
func Linux(major, minor uint64) Release { return Release(major<<16 | minor<<8) }

func (r Release) String() string { return fmt.Sprintf("%d.%d", r>>16, r>>8&255) }

// next is the release after r, within a major version.
func (r Release) next() Release { return r + Linux(0, 1) }

// IsNext reports whether no release is between r and s, which is newer. 4.20, 5.19 and 6.19 were the last of their major versions.
func (r Release) IsNext(s Release) bool {
	if r == Linux(4, 20) || r == Linux(5, 19) || r == Linux(6, 19) {
		return s == Linux(uint64(r>>16)+1, 0)
	}
	return r.next() == s
}

// parseRelease reads "6.1".
func parseRelease(text string) (Release, error) {
	var major, minor uint64
	_, err := fmt.Sscanf(text, "%d.%d", &major, &minor)
	return Linux(major, minor), err
}

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

// MarshalText returns "6.1".
func (r Release) MarshalText() ([]byte, error) { return []byte(r.String()), nil }
