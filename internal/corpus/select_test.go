// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bytes"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/corpus/selection"
)

// Kernels with a key in their path are selected without reading, the others when they are read.
func TestOpenSelect(t *testing.T) {
	bad := string(bytes.Repeat([]byte{0x9f, 0xeb, 1, 0}, 10))
	dir := tree(t, map[string]string{
		"debian/12/x86_64/6.1.btf": string(blobLE),
		"debian/11/x86_64/5.1.btf": bad,
		"ubuntu/22/x86_64/5.2.btf": bad,
		"all.tar":                  string(tarOf(member{"debian/12/arm64/6.2.btf", blobLE}, member{"debian/11/arm64/5.1.btf", blobLE})),
	})
	for _, tt := range []struct {
		selects, excludes []string
		want              []string
		unselected        int
	}{
		{[]string{"debian=12"}, nil, []string{"debian/12/arm64/6.2", "debian/12/x86_64/6.1"}, 2},
		{[]string{"debian"}, []string{"debian/11/x86_64", "<6,arm64"}, []string{"debian/12/arm64/6.2", "debian/12/x86_64/6.1"}, 2},
		{nil, []string{"x86_64"}, []string{"debian/12/arm64/6.2", "debian/11/arm64/5.1"}, 3},
		{[]string{"<5.2,arm64", "release=6.1"}, nil, []string{"debian/11/arm64/5.1", "debian/12/x86_64/6.1"}, 2},
	} {
		sel := parseSelectors(t, tt.selects...)
		exc := parseSelectors(t, tt.excludes...)
		c, got, errs := readAll(t, Options{Select: sel, Exclude: exc}, dir)
		if len(errs) > 0 || c.Unselected != tt.unselected {
			t.Errorf("%v, %v: errors %v, %d unselected", tt.selects, tt.excludes, errs, c.Unselected)
		}
		var list []string
		for _, k := range got {
			list = append(list, k.Name)
		}
		checkList(t, "kernels", list, tt.want)
	}
}

// A selector that matches no kernel is reported, with alternatives.
func TestSelection(t *testing.T) {
	dir := tree(t, map[string]string{
		"debian/11/x86_64/5.10.btf":  string(blobLE),
		"debian/12/x86_64/6.1.btf":   string(blobLE),
		"debian/12/arm64/6.1.btf":    string(blobLE),
		"debian/sid/x86_64/6.19.btf": string(blobLE),
		"ubuntu/22/x86_64/5.2.btf":   string(blobLE),
		"ubuntu/23/x86_64/5.3.btf":   "", // damaged, but there
		"old/a13-5.10.btf":           string(blobLE),
	})
	for _, tt := range []struct {
		selects, excludes []string
		unmatched         []string
	}{
		{[]string{"debian"}, []string{"arm64"}, nil},
		{[]string{"debian", "debain", "debian=13", "debian>=12,s390x", "debian,5.4"}, nil, []string{
			"debain: nearest by distribution: debian, ubuntu",
			"debian=13: nearest by version: sid, 11, 12",
			"debian>=12,s390x: nearest by architecture: arm64, x86_64",
			"debian,5.4: nearest by release: 5.10, 6.1, 6.19",
		}},
		{[]string{"debian>=11"}, nil, nil},
		{[]string{"debian>=11", "debian=sid"}, nil, nil},
		{[]string{"debian>=11"}, []string{"debian=sid"}, nil},
		{[]string{">=5"}, nil, nil},
		{[]string{"ubuntu=23", "debian=12"}, []string{"fedora"}, []string{"fedora: nearest by distribution: debian, ubuntu (excludes)"}},
		{nil, []string{"debian>12"}, []string{"debian>12: nearest by version: sid, 11, 12 (excludes)"}},
	} {
		sel := parseSelectors(t, tt.selects...)
		exc := parseSelectors(t, tt.excludes...)
		c, _, _ := readAll(t, Options{Select: sel, Exclude: exc}, dir)
		s := c.Selection()
		var got []string
		for _, u := range s.Unmatched {
			text := u.Selector.String() + ": " + u.Nearest
			if u.Excludes {
				text += " (excludes)"
			}
			got = append(got, text)
		}
		checkList(t, strings.Join(tt.selects, " "), got, tt.unmatched)
	}
}

// Whether a selector matches is known when all files without a key in their path are read.
func TestSelectionUnread(t *testing.T) {
	dir := tree(t, map[string]string{
		"all.tar": string(tarOf(member{"debian/12/arm64/6.2.btf", blobLE}, member{"debian/11/arm64/5.1.btf", blobLE})),
	})
	sel := parseSelectors(t, "debian=12", "debian=13")
	c, err := Open(t.Context(), []string{dir}, Options{Select: sel})
	if err != nil {
		t.Fatal(err)
	}
	if s := c.Selection(); len(s.Unmatched) != 2 || s.Unread != 1 {
		t.Errorf("before reading: %+v", s)
	}
	f, err := c.Files[0].WithConfig([]byte(someConfig)) // a copy
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Read(t.Context(), func(*Kernel) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if s := c.Selection(); s.Unread != 0 || len(s.Unmatched) != 1 || s.Unmatched[0].Nearest != "nearest by version: 11, 12" {
		t.Errorf("after reading: %+v", s)
	}
}

func TestOpenNothingSelected(t *testing.T) {
	dir := tree(t, map[string]string{"debian/12/x86_64/6.1.btf": string(blobLE), "debian/11/x86_64/5.10.btf": string(blobLE)})
	sel := parseSelectors(t, "debain", "ubuntu>22")
	_, err := Open(t.Context(), []string{dir}, Options{Select: sel})
	want := dir + ": none of 2 kernels selected: debain matches none (nearest by distribution: debian), ubuntu>22 matches none (nearest by distribution: debian)"
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}

func parseSelectors(t *testing.T, texts ...string) (all []selection.Selector) {
	t.Helper()
	for _, text := range texts {
		s, err := selection.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}
