// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"strings"
)

// Period is since when something is allowed: not up to After, and from By on, or the other way round. The zero Period is always.
type Period struct {
	After, By Release
	Withdrawn bool // it is allowed up to After, and not from By on
}

// Always reports whether a period has no beginning and no end.
func (p Period) Always() bool { return p == Period{} }

// parsePeriod cuts @AFTER..BY from a word, if it has that.
func parsePeriod(word string) (name string, p Period, err error) {
	name, when, ok := strings.Cut(word, "@")
	if !ok {
		return name, p, nil
	}
	after, by, ok := strings.Cut(when, "..")
	if !ok {
		return name, p, fmt.Errorf("%s: want @AFTER..BY", word)
	}
	if p.After, err = parseRelease(after); err == nil {
		p.By, err = parseRelease(by)
	}
	return name, p, err
}
