// SPDX-License-Identifier: Apache-2.0

// Package suggest finds the word that a user meant.
package suggest

import (
	"cmp"
	"slices"

	"github.com/xrash/smetrics"
)

// longest is the maximum length of compared words, in bytes.
const longest = 255

// Word returns the closest word within two edits, or within one if text has at most three bytes. Edits are insertions, deletions and
// substitutions of a byte; swapping two adjacent bytes is one edit. Without such a word it returns "".
func Word(text string, words []string) string {
	best, found := 2, ""
	if len(text) <= 3 {
		best = 1
	}
	if len(text) <= 1 {
		return ""
	}
	for _, w := range words {
		if d := distance(text, w); d < best || d == best && found == "" {
			best, found = d, w
		}
	}
	return found
}

// Sort sorts words by their distance from text. It is stable.
func Sort(text string, words []string) {
	slices.SortStableFunc(words, func(a, b string) int { return cmp.Compare(distance(text, a), distance(text, b)) })
}

// SortSeries sorts names such as debian/12 by their distance from name: first without their numbers, then by the difference of these. It is
// stable.
func SortSeries(name string, names []string) {
	letters, numbers := split(name)
	slices.SortStableFunc(names, func(a, b string) int {
		la, na := split(a)
		lb, nb := split(b)
		return cmp.Or(cmp.Compare(distance(letters, la), distance(letters, lb)), slices.Compare(apart(numbers, na), apart(numbers, nb)))
	})
}

// split replaces the numbers in a text by 0 and returns them, up to a limit.
func split(text string) (letters string, numbers []int) {
	const most = 1e8
	var b []byte
	inside := false
	for _, c := range []byte(text) {
		digit := '0' <= c && c <= '9'
		switch {
		case !digit:
			b = append(b, c)
		case !inside:
			b, numbers = append(b, '0'), append(numbers, int(c-'0'))
		default:
			n := &numbers[len(numbers)-1]
			*n = min(*n*10+int(c-'0'), most)
		}
		inside = digit
	}
	return string(b), numbers
}

// apart returns the differences of numbers.
func apart(a, b []int) []int {
	out := make([]int, min(len(a), len(b)))
	for i := range out {
		out[i] = max(a[i]-b[i], b[i]-a[i])
	}
	return out
}

func distance(a, b string) int {
	if max(len(a), len(b)) > longest {
		return longest
	}
	if swapped(a, b) {
		return 1
	}
	return smetrics.WagnerFischer(a, b, 1, 1, 1)
}

// swapped reports whether the words differ by a swap of two adjacent bytes.
func swapped(a, b string) bool {
	for i := 0; len(a) == len(b) && i+1 < len(a); i++ {
		if a[i] != b[i] {
			return a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
		}
	}
	return false
}
