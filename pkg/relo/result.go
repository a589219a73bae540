// SPDX-License-Identifier: Apache-2.0

package relo

import (
	"fmt"
	"slices"
)

// Result is how a loader decides one relocation. The zero value is Resolved.
// As text, in JSON too, it is its name in lower case.
type Result uint8

// The results.
const (
	Resolved  Result = iota
	Absent           // an existence or size question answered no
	Poisoned         // the instruction is made invalid
	Ambiguous        // candidates disagree; the load fails
	Error            // the load fails
)

var resultNames = []string{"resolved", "absent", "poisoned", "ambiguous", "error"}

// String returns the name of the result.
func (r Result) String() string {
	if int(r) < len(resultNames) {
		return resultNames[r]
	}
	return fmt.Sprintf("unknown(%d)", uint8(r))
}

// MarshalText returns [Result.String].
func (r Result) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText parses the name of a result. Any other text is an error.
func (r *Result) UnmarshalText(text []byte) error {
	i := slices.Index(resultNames, string(text))
	if i < 0 {
		return fmt.Errorf("unknown result %q", text)
	}
	*r = Result(i)
	return nil
}

// OK reports whether the load goes on and the instruction stays valid.
func (r Result) OK() bool { return r <= Absent }
