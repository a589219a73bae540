// SPDX-License-Identifier: Apache-2.0

package rule

import "fmt"

// Status is a verdict on one program on one kernel, or on one thing that it
// uses. The zero value is OK; greater is worse.
type Status uint8

// The verdicts.
const (
	OK       Status = iota // the kernel has everything that the program uses
	Guarded                // something is absent, but cannot be reached
	Unloaded               // the loader does not load the program on this kernel
	Other                  // the object is for other machines
	Unknown                // cannot be judged; the reason says why
	MayFail                // depends on something that BTF does not show or that the loader sets
	Fails                  // the program does not load, or cannot be attached
	numStatus
)

var statusNames = [numStatus]string{"ok", "guarded", "not loaded", "n/a", "unknown", "may fail", "fails"}

// Judged reports whether it is a verdict on something that is loaded.
func (s Status) Judged() bool { return s != Unloaded && s != Other }

// String returns the verdict in words.
func (s Status) String() string {
	if s < numStatus {
		return statusNames[s]
	}
	return fmt.Sprintf("status %d", uint8(s))
}

// MarshalText is String.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (s *Status) UnmarshalText(text []byte) error {
	for i, n := range statusNames {
		if n == string(text) {
			*s = Status(i)
			return nil
		}
	}
	return fmt.Errorf("unknown status %q", text)
}
