// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"slices"
	"strings"
	"testing"
)

func TestWord(t *testing.T) {
	words := []string{"output", "list", "lint", "xz", "btf", "shard", "json", "j", strings.Repeat("l", 300)}
	for _, tt := range []struct{ text, want string }{
		{"ouput", "output"},
		{"outptu", "output"},
		{"lits", "list"},
		{"lit", "list"}, // before lint, which is as near
		{"linnt", "lint"},
		{"output", "output"},
		{"bt", "btf"},
		{"bft", "btf"},
		{"zx", "xz"},
		{"fbt", ""}, // two of three
		{"x", ""},   // any letter is one away from any other
		{"", ""},
		{"nonsense", ""},
		{strings.Repeat("l", 299), ""},
		{strings.Repeat("l", 1<<17), ""},
	} {
		if got := Word(tt.text, words); got != tt.want {
			t.Errorf("%.20q: %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestSort(t *testing.T) {
	words := []string{"ubuntu", "debian", "arch", "android", "devuan"}
	Sort("debain", words)
	if want := []string{"debian", "devuan", "ubuntu", "arch", "android"}; !slices.Equal(words, want) {
		t.Errorf("%v, want %v", words, want)
	}
}
