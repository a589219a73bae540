// SPDX-License-Identifier: Apache-2.0

package kernel

import "strings"

// Series returns what the builds of one series have in common: distribution,
// version, arch and, for a release, the version of Linux and all words that are
// no numbers: "6.1-rt-amd64" of 6.1.0-47-rt-amd64. Within it numbers alone tell
// builds apart; other flavours and other versions of Linux have other structs.
func (k Key) Series() Key {
	k = k.Canonical()
	release := ""
	numbers, last := 0, false // whether the word before is one
	for _, w := range strings.FieldsFunc(k.Release, func(r rune) bool { return strings.ContainsRune("-.+_~", r) }) {
		number := strings.Trim(w, "0123456789") == ""
		if number {
			if numbers++; numbers > 2 {
				continue
			}
		}
		switch {
		case release == "":
		case number && last:
			release += "."
		default:
			release += "-"
		}
		release += w
		last = number
	}
	k.Release = release
	return k
}
