// SPDX-License-Identifier: Apache-2.0

package kernel

import "strings"

// Series returns the key that all builds of one series share: distribution, version
// and arch, and of the release its first two numbers and all words that are not
// numbers, such as "6.1-rt-amd64" for 6.1.0-47-rt-amd64. Builds of a series differ in
// the other numbers. Other flavours and other versions of Linux have other structs,
// so they are other series.
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
