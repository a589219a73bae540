// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"strconv"
	"strings"
)

// Release is a version of Linux, as LINUX_KERNEL_VERSION without the patch level.
type Release uint32

// Linux returns a release of Linux.
func Linux(major, minor uint64) Release { return Release(major<<16 | minor<<8) }

// String returns "6.1".
func (r Release) String() string { return fmt.Sprintf("%d.%d", r>>16, r>>8&255) }

// MarshalText returns "6.1".
func (r Release) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// Next is the release after r, within a major version.
func (r Release) Next() Release { return r + Linux(0, 1) }

// IsNext reports whether no release is between r and s, which is newer. 4.20, 5.19 and 6.19 were the last of their major versions.
func (r Release) IsNext(s Release) bool {
	if r == Linux(4, 20) || r == Linux(5, 19) || r == Linux(6, 19) {
		return s == Linux(uint64(r>>16)+1, 0)
	}
	return r.Next() == s
}

// parseRelease reads "6.1".
func parseRelease(text string) (Release, error) {
	major, minor, _ := strings.Cut(text, ".")
	a, errA := strconv.ParseUint(major, 10, 8)
	b, errB := strconv.ParseUint(minor, 10, 8)
	if errA != nil || errB != nil {
		return 0, fmt.Errorf("%q is not a release of Linux", text)
	}
	return Linux(a, b), nil
}
