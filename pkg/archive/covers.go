// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/btfa"
)

// NotCoveredError is returned for an object that an archive was not made for.
type NotCoveredError struct {
	Object Object
	Made   []Object // those that the archive was made for; not to be changed
	why    string
}

// maxMade is how many objects the error lists.
const maxMade = 4

// Error returns the object, what the archive was made for, and how they differ, in one line of printable text.
func (e *NotCoveredError) Error() string {
	var made []string
	for _, o := range e.Made[:min(len(e.Made), maxMade)] {
		made = append(made, o.String())
	}
	if n := len(e.Made) - maxMade; n > 0 {
		made = append(made, fmt.Sprintf("%d more", n))
	}
	if len(made) == 0 {
		made = []string{"unknown objects"}
	}
	return fmt.Sprintf("archive was made for %s, not for %s: %s", strings.Join(made, ", "), e.Object, e.why)
}

// Covers is [Info.Covers] of the archive's Info.
func (a *Archive) Covers(o Object) error { return a.info.Covers(o) }

// Covers returns nil if the archive was made for an object with the relocations of o.
// Code may differ. Otherwise the error is a [*NotCoveredError]: the archive is stale or
// belongs to another program, and "btfgen generate" has to make it again. An object
// without relocations needs no archive. If o has Arches, the archive's object must be
// for one of them.
//
// Archives of old writers have no fingerprints. They cover only the same file.
func (i *Info) Covers(o Object) error {
	if btfa.NoRelocations(o.Fingerprint) {
		return nil
	}
	why := "its relocations differ"
	if len(o.Fingerprint) == 0 {
		why = "its relocations cannot be read"
	}
	for _, made := range i.Objects {
		same := len(made.Fingerprint) > 0 && bytes.HasPrefix(o.Fingerprint, made.Fingerprint)
		if len(made.Fingerprint) == 0 {
			same = len(made.Sum) > 0 && bytes.HasPrefix(o.Sum, made.Sum)
			why = "it is another file, and the archive has no fingerprints of relocations"
		}
		if same && shareArch(made.Arches, o.Arches) {
			return nil
		}
		if same {
			why = "the archive's object is for other machines"
		}
	}
	return &NotCoveredError{o, i.Objects, why}
}

// shareArch reports whether two objects may be for one machine. No arches means any.
func shareArch(a, b []string) bool {
	return len(a) == 0 || len(b) == 0 || slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}
