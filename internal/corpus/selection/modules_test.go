// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"slices"
	"testing"
)

func TestParseModules(t *testing.T) {
	for _, tt := range []struct {
		text  string
		names []string
		err   string
	}{
		{"all", nil, ""},
		{"none", []string{"none"}, ""},
		{"nf-conntrack, btrfs,btrfs", []string{"btrfs", "nf_conntrack"}, ""},
		{"", nil, "a name is missing"},
		{"a,,b", nil, "a name is missing"},
		{"a,none", nil, "none does not go with other names"},
		{"all,a", nil, "all does not go with other names"},
		{"btrfs.ko.xz", nil, "btrfs.ko.xz is a file name, want btrfs"},
	} {
		m, err := ParseModules(tt.text)
		if got := ""; err != nil {
			if got = err.Error(); got != tt.err {
				t.Errorf("%q: %s, want %s", tt.text, got, tt.err)
			}
		} else if !slices.Equal(m.Names(), tt.names) || tt.err != "" {
			t.Errorf("%q: %q, want %q", tt.text, m.Names(), tt.names)
		}
	}
}

// TestModulesNotFound asks for modules with names that kernels have, and with others.
func TestModulesNotFound(t *testing.T) {
	m, err := ParseModules("btrfs,nf_contrack,xyz")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"btrfs": true, "nf_conntrack": false} {
		if m.Has(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
	want := []NotFound{{"nf_contrack", "nf_conntrack"}, {"xyz", ""}}
	if got := m.NotFound(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if m.Unread(); m.NotFound() != nil {
		t.Error("not found, though kernels were not read")
	}
	if (*Modules)(nil).NotFound() != nil || !(*Modules)(nil).Has("a") || NoModules().Has("a") {
		t.Error("all or none")
	}
}
