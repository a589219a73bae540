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
