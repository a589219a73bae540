// SPDX-License-Identifier: Apache-2.0

// Package suggest finds the word that was meant.
package suggest

import (
	"cmp"
	"slices"

	"github.com/xrash/smetrics"
)

// longest is the length in bytes of what is compared: nobody's slip is in a longer word.
const longest = 255

// Word returns the word that text is a slip of: the first of those that take the fewest slips, which are
// insertions, deletions and substitutions of a byte, and two that changed places. It takes two slips at most, one
// in text of three bytes or less. Without such a word it returns "".
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

// Sort orders words by how far they are from text, those that are as far as they were.
func Sort(text string, words []string) {
	slices.SortStableFunc(words, func(a, b string) int { return cmp.Compare(distance(text, a), distance(text, b)) })
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

// swapped says whether nothing but two neighbours changed places.
func swapped(a, b string) bool {
	for i := 0; len(a) == len(b) && i+1 < len(a); i++ {
		if a[i] != b[i] {
			return a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
		}
	}
	return false
}
