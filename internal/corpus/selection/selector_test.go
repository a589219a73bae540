// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/pkg/kernel"
)

func TestSelector(t *testing.T) {
	keys := []string{
		"debian/10/x86_64/4.19.0-27-amd64",
		"debian/12/x86_64/6.1.0-47-amd64",
		"debian/12/arm64/6.1.0-50-arm64",
		"ubuntu/22.04/x86_64/5.15.0-9-generic",
		"amzn/2/aarch64/5.10.118-111.515.amzn2.aarch64",
		"arch/-/x86_64/6.9.1-arch1-1",
		"-/-/-/5.4.0",
		"debian/sid/x86_64/6.10.4-amd64",
		"kylin/V10/x86_64/4.19.90-24.4",
		"android/13/arm64/a13-5.10-lts-arm64",
	}
	for _, tt := range []struct {
		text string
		want []int
	}{
		{"debian", []int{0, 1, 2, 7}},
		{"deb*", []int{0, 1, 2, 7}},
		{"id=debian", []int{0, 1, 2, 7}},
		{"id!=debian", []int{3, 4, 5, 8, 9}},
		{"amazon", []int{4}},
		{"debian=12", []int{1, 2}},
		{"debian>=11", []int{1, 2}}, // sid has no number
		{"debian<11", []int{0}},
		{"debian=sid", []int{7}},
		{"kylin>=10", []int{8}},
		{"kylin<v11", []int{8}},
		{"debian>=11,x86_64", []int{1}},
		{" debian >= 11 , amd64 ", []int{1}},
		{"debian<12", []int{0}},
		{"arm64", []int{2, 4, 9}},
		{"arch=aarch64", []int{2, 4, 9}},
		{"arch=arm*", []int{2, 4, 9}},
		{"arch!=x86_64", []int{2, 4, 9}},
		{"arch", []int{5}},                              // the distribution
		{">=5.15", []int{1, 2, 3, 5, 7}},                // Android's is a 5.10,
		{"release>=5.15,release<6.9", []int{1, 2, 3}},   // 6.10 is not before 6.9,
		{"release<=6.1", []int{0, 1, 2, 3, 4, 6, 8, 9}}, // 6.1.0-47 is a 6.1
		{"5.10,android", []int{9}},
		{"release>6.1", []int{5, 7}},
		{"release<6.1", []int{0, 3, 4, 6, 8, 9}},
		{"release=5.1?.*", []int{3, 4}},
		{"6.1.*", []int{1, 2}},
		{"6.1", []int{1, 2}}, // the series
		{"5", []int{3, 4, 6, 9}},
		{"6.1.0-47-amd64", []int{1}},
		{"6.1.0-4", nil},
		{"6.1,debian", []int{1, 2}},
		{"a13-5.10-lts-arm64", nil}, // a distribution
		{"release=a13-5.10-lts-arm64", []int{9}},
		{"release=*-generic", []int{3}},
		{"version>=12", []int{1, 2, 3, 9}},
		{"version!=12", []int{0, 3, 4, 7, 8, 9}},
		{"debian/12", []int{1, 2}},
		{"debian/*/x86_64", []int{0, 1, 7}},
		{"*/*/*/6.*", []int{1, 2, 5, 7}},
		{"debian/12/x86_64/6.1.0-47-amd64", []int{1}},
		{"*", []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
		{"*,<5", []int{0, 8}},
		{"none", nil},
	} {
		s, err := Parse(tt.text)
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		if s.String() != tt.text {
			t.Errorf("%s: text is %s", tt.text, s)
		}
		var got, want []string
		for _, text := range keys {
			k, err := kernel.ParseKey(text)
			if err != nil {
				t.Fatal(err)
			}
			if s.Match(k) {
				got = append(got, text)
			}
		}
		for _, i := range tt.want {
			want = append(want, keys[i])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", tt.text, got, want)
		}
	}
	if !(Selector{}).Match(kernel.Key{}) {
		t.Error("the zero selector does not match")
	}
}

// What is not understood is refused.
func TestSelectorErrors(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", "a term is missing"},
		{",", "a term is missing"},
		{"debian,", "a term is missing"},
		{"debian, ,x86_64", "a term is missing"},
		{"debian>=", "no value after >="},
		{"debian>=12;x86_64", "';': want a comma between terms"},
		{"debian>=12 x86_64", "' ': want a comma between terms, or ? in place of this character in a name"},
		{"debian | ubuntu", "' ': want a comma between terms, or ? in place of this character in a name"},
		{"debian>=x", `"x" is not a version: it must begin with a number`},
		{"debian>=sid", `"sid" is not a version`},
		{"release>=*", `"*": a pattern has no order (want = or != rather than >=)`},
		{"release==5", "'=': a second operator"},
		{"release=>5", "'>': a second operator"},
		{">=5<6", "'<': a second operator"},
		{"a/b/c/d/e", "more than ID/VERSION_ID/ARCH/RELEASE"},
		{"debian//x86_64", "a name or pattern is missing"},
		{"debian/12>=5", "a term with an operator cannot have '/'"},
		{"debian=12/x86_64", "a term with an operator cannot have '/'"},
		{"!", "'!' is not an operator (want !=)"},
		{"debian!12", "'!' is not an operator (want !=)"},
		{"arch>=x86_64", "distributions and architectures have no order (want = or != rather than >=)"},
		{"debian/12/x86_64/6.1/x", "more than ID/VERSION_ID/ARCH/RELEASE"},
		{"id<debian", "distributions and architectures have no order"},
		{"release=[", `"[": syntax error in pattern`},
		{"[", `"[": syntax error in pattern`},
		{"debian(12)", "'(' is not allowed in a name"},
		{"dębian,a#b", "'#' is not allowed in a name"},
		{"a\nb", "'\\n' is not allowed in a name"},
	} {
		s, err := Parse(tt.text)
		if err == nil {
			t.Errorf("%q: parsed as %+v", tt.text, s)
		} else if !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%q: %s\nwant %s", tt.text, err, tt.want)
		}
	}
}

// TestSelectorPage holds docs/cli.md to its examples.
func TestSelectorPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Selectors\n")
	section, _, _ = strings.Cut(section, "\n## ")
	examples, refusals := 0, 0
	for _, m := range regexp.MustCompile("(?m)^\\| `(.*?)` \\| (.*) \\|$").FindAllStringSubmatch(section, -1) {
		s, err := Parse(m[1])
		takes, leaves, ok := strings.Cut(strings.ReplaceAll(m[2], "`", ""), " | ")
		if !ok {
			refusals++
			if err == nil || err.Error() != m[2] {
				t.Errorf("%v\nwant %s", err, m[2])
			}
			continue
		}
		examples++
		for text, want := range map[string]bool{takes: true, leaves: false} {
			k, kerr := kernel.ParseKey(text)
			if err != nil || kerr != nil || s.Match(k) != want {
				t.Errorf("%s: matches %s: %v, want %v (%v, %v)", m[1], text, s.Match(k), want, err, kerr)
			}
		}
	}
	if examples < 10 || refusals < 1 {
		t.Errorf("%d examples and %d refusals found", examples, refusals)
	}
}
