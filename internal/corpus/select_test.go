package corpus

import (
	"bytes"
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
	}
	for _, tt := range []struct {
		text string
		want []int
	}{
		{"debian", []int{0, 1, 2}},
		{"deb*", []int{0, 1, 2}},
		{"id=debian", []int{0, 1, 2}},
		{"id!=debian", []int{3, 4, 5}},
		{"amazon", []int{4}},
		{"debian=12", []int{1, 2}},
		{"debian>=11", []int{1, 2}},
		{"debian>=11,x86_64", []int{1}},
		{" debian >= 11 , amd64 ", []int{1}},
		{"debian<12", []int{0}},
		{"arm64", []int{2, 4}},
		{"arch=aarch64", []int{2, 4}},
		{"arch=arm*", []int{2, 4}},
		{"arch!=x86_64", []int{2, 4}},
		{"arch", []int{5}}, // the distribution
		{">=5.15", []int{1, 2, 3, 5}},
		{"release>=5.15,release<6.9", []int{1, 2, 3}},
		{"release<=6.1", []int{0, 1, 2, 3, 4, 6}}, // 6.1.0-47 is a 6.1
		{"release>6.1", []int{5}},
		{"release<6.1", []int{0, 3, 4, 6}},
		{"release=5.1?.*", []int{3, 4}},
		{"6.1.*", []int{1, 2}},
		{"release=*-generic", []int{3}},
		{"version>=12", []int{1, 2, 3}},
		{"version!=12", []int{0, 3, 4}},
		{"debian/12", []int{1, 2}},
		{"debian/*/x86_64", []int{0, 1}},
		{"*/*/*/6.*", []int{1, 2, 5}},
		{"debian/12/x86_64/6.1.0-47-amd64", []int{1}},
		{"*", []int{0, 1, 2, 3, 4, 5, 6}},
		{"*,<5", []int{0}},
		{"none", nil},
	} {
		s, err := ParseSelector(tt.text)
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
		checkList(t, tt.text, got, want)
	}
	if !(Selector{}).Match(kernel.Key{}) {
		t.Error("the zero selector does not match")
	}
}

func TestSelectorErrors(t *testing.T) {
	for _, text := range []string{
		"", ",", "debian,", "debian>=", "release==5", "release=>5", "a/b/c/d/e", "debian//x86_64", "!", "!debian", "arch>=x86_64",
		"id<debian", "release=[", "[", ">=5<6",
	} {
		if s, err := ParseSelectors([]string{"debian", text}); err == nil {
			t.Errorf("%q: parsed as %+v", text, s)
		}
	}
}

// What a path tells is selected without reading, the rest when it is read.
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
		sel, err := ParseSelectors(tt.selects)
		if err != nil {
			t.Fatal(err)
		}
		exc, err := ParseSelectors(tt.excludes)
		if err != nil {
			t.Fatal(err)
		}
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
