// SPDX-License-Identifier: Apache-2.0

package rule

import (
	_ "embed"
	"fmt"
	"strings"
)

// permission is since when something is allowed: not up to after, and from by on, or the other way round. Both are 0 if it always is.
type permission struct {
	after, by Release
	withdrawn bool // it is allowed up to after, and not from by on
}

// parsePermission cuts @AFTER..BY from a word, if it has that.
func parsePermission(word string) (name string, p permission, err error) {
	name, when, ok := strings.Cut(word, "@")
	if !ok {
		return name, p, nil
	}
	var major, minor, byMajor, byMinor uint64
	if _, err := fmt.Sscanf(when, "%d.%d..%d.%d", &major, &minor, &byMajor, &byMinor); err != nil {
		return name, p, fmt.Errorf("%s: want @AFTER..BY: %w", word, err)
	}
	return name, permission{after: Linux(major, minor), by: Linux(byMajor, byMinor)}, nil
}

// permits judges by code what is refused up to a release, as far as that is known.
func (k *Inventory) permits(p permission, code Code) Finding {
	switch {
	case p.withdrawn && k.atLeast(p.by):
		return Finding{Status: Fails, Code: code}
	case p.withdrawn:
		return Finding{Status: MayFail, Code: code, Args: Args{Decided: ByRelease, Doubt: NotShown}}
	case p == permission{}, k.atLeast(p.by):
		return Finding{}
	}
	return Finding{Status: MayFail, Code: code, Args: Args{Since: p.after, Until: p.by, Decided: ByRelease}}
}
