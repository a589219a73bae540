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

// TestSortSeries wants the versions of a distribution that are next to a number.
func TestSortSeries(t *testing.T) {
	names := []string{"ubuntu/22.04", "debian/9", "debian/10", "debian/11", "debian/12", "debian/13", "rocky/9", "debian/sid"}
	for _, tt := range []struct{ name, want string }{
		{"debian/99", "debian/13 debian/12 debian/11"},
		{"debian/1", "debian/9 debian/10 debian/11"},
		{"debian/12", "debian/12 debian/11 debian/13"},
		{"debain/12", "debian/12 debian/11 debian/13"},
		{"ubuntu/22.4", "ubuntu/22.04 debian/13 debian/12"},
		{"debian/99999999999999999999999", "debian/13 debian/12 debian/11"},
	} {
		got := slices.Clone(names)
		if SortSeries(tt.name, got); strings.Join(got[:3], " ") != tt.want {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
}
