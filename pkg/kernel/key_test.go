// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"slices"
	"strings"
	"testing"
)

func TestKeyText(t *testing.T) {
	for _, tt := range []struct {
		text string
		key  Key
	}{
		{"debian/12/x86_64/6.1.0-47-amd64", Key{"debian", "12", "x86_64", "6.1.0-47-amd64"}},
		{"arch/-/x86_64/6.9.1-arch1-1", Key{"arch", "", "x86_64", "6.9.1-arch1-1"}},
		{"-/-/-/-", Key{}},
		{"centos/8/aarch64/4.18.0-147.5.1.el8_1.aarch64", Key{"centos", "8", "aarch64", "4.18.0-147.5.1.el8_1.aarch64"}},
	} {
		k, err := ParseKey(tt.text)
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
		}
		if k != tt.key || k.String() != tt.text {
			t.Errorf("%s: got %#v, %s", tt.text, k, k)
		}
		if err := k.Validate(); err != nil {
			t.Errorf("%s: %v", tt.text, err)
		}
	}
	for _, bad := range []string{
		"", "debian", "debian/12/x86_64", "debian/12/x86_64/", "a/b/c/d/e", "../12/x86_64/6.1",
		"debian/./x86_64/6.1", "debian/12/x86_64/6\n1", `debian/12/x86_64/..\6`, "/12/x86_64/6.1",
	} {
		if k, err := ParseKey(bad); err == nil {
			t.Errorf("%q: parsed as %#v", bad, k)
		}
	}
	for _, bad := range []string{"../../x", "..", ".", "-", "a/b", `a\b`, "a\x00", "a\x7f", "a\n", strings.Repeat("x", 256)} {
		if err := (Key{ID: "debian", Release: bad}).Validate(); err == nil {
			t.Errorf("release %q is valid", bad)
		}
	}
	for _, good := range []string{"", "--", "...", "a b", "6.1+deb~1", strings.Repeat("x", 255), "\u00e9"} {
		if err := (Key{Release: good}).Validate(); err != nil {
			t.Errorf("release %q: %v", good, err)
		}
	}
}

func TestKnown(t *testing.T) {
	for _, tt := range []struct {
		key  string
		want bool
	}{
		{"debian/12/x86_64/6.1", true},
		{"arch/-/x86_64/6.9", true},
		{"-/12/x86_64/6.1", false},
		{"debian/12/-/6.1", false},
		{"debian/12/x86_64/-", false},
	} {
		k, err := ParseKey(tt.key)
		if err != nil {
			t.Fatal(err)
		}
		if k.Known() != tt.want {
			t.Errorf("%s: known is %v", tt.key, !tt.want)
		}
	}
}

func TestCanonical(t *testing.T) {
	for in, want := range map[string]string{
		"amd64": "x86_64", "x86_64": "x86_64", "x86": "x86_64", "aarch64": "arm64", "arm64": "arm64",
		"ppc64el": "ppc64le", "armv7l": "arm", "armhf": "arm", "s390x": "s390x", "i686": "i386", "vax": "vax", "": "",
	} {
		if got := CanonicalArch(in); got != want {
			t.Errorf("arch %s: got %s, want %s", in, got, want)
		}
	}
	for alias, canonical := range arches {
		if CanonicalArch(canonical) != canonical || !KnownArch(alias) {
			t.Errorf("arch %s: %s is not canonical", alias, canonical)
		}
	}
	for in, want := range map[string]string{
		"amazon": "amzn", "amzn": "amzn", "redhat": "rhel", "oracle": "ol", "suse": "sles",
		"opensuse": "opensuse-leap", "Debian": "debian", "ubuntu": "ubuntu", "": "",
		"\xff": "\xff", "\u212a": "\u212a", // bytes that are no ASCII letters stay: the kelvin sign is no k
	} {
		if got := CanonicalID(in); got != want {
			t.Errorf("id %s: got %s, want %s", in, got, want)
		}
	}
	a := Key{"amazon", "2", "aarch64", "5.10"}
	b := Key{"amzn", "2", "arm64", "5.10"}
	if a.Compare(b) != 0 || a.Canonical() != b.Canonical() {
		t.Error("aliases differ")
	}
}

// TestCompareVersions compares every pair of sorted lists both ways.
func TestCompareVersions(t *testing.T) {
	for _, list := range [][]string{
		{"", "4.18.0-147.5.1.el8_1.aarch64", "4.19.90-24.4", "4.19.90-52.22", "5.4", "5.4.0", "5.4.0-9-generic", "5.4.0-42-generic", "5.10", "6.9", "6.10", "6.10.1"},
		{"6.13-rc1", "6.13-rc2", "6.13-rc10", "6.13", "6.13-1", "6.13.1"},
		{"6.13~rc7-amd64", "6.13-amd64"},
		{"9", "10", "11", "12", "22.04", "22.10"},
		{"01", "1"},
		{"bullseye", "sid"},
	} {
		for i, a := range list {
			for j, b := range list {
				got, want := CompareVersions(a, b), 0
				if i < j {
					want = -1
				} else if i > j {
					want = 1
				}
				if got != want {
					t.Errorf("%q and %q: got %d, want %d", a, b, got, want)
				}
			}
		}
	}
}

func TestCompareSorts(t *testing.T) {
	want := []string{
		"centos/8/aarch64/4.18.0",
		"debian/9/x86_64/6.9",
		"debian/12/arm64/6.10",
		"debian/12/amd64/6.9",
		"debian/12/x86_64/6.10",
	}
	var keys []Key
	for _, s := range want {
		k, err := ParseKey(s)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, k)
	}
	slices.Reverse(keys)
	slices.SortFunc(keys, Key.Compare)
	for i, k := range keys {
		if k.String() != want[i] {
			t.Errorf("%d: got %s, want %s", i, k, want[i])
		}
	}
}
