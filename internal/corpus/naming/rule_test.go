// SPDX-License-Identifier: Apache-2.0

package naming

import (
	"strings"
	"testing"
)

func TestRule(t *testing.T) {
	for _, tt := range []struct{ naming, path, want string }{
		{"debian/12/x86_64", "/k/5.10.0-30-amd64.btf.zst", "debian/12/x86_64/5.10.0-30-amd64"},
		{"debian/12/x86_64", "/k/vmlinuz-5.10.0-30-amd64", "debian/12/x86_64/5.10.0-30-amd64"},
		{"debian/12/x86_64", "/k/vmlinux", "debian/12/x86_64/-"}, // its content may have the release
		{"debian/12/x86_64", "/ubuntu/20.04/arm64/5.4.btf", "debian/12/x86_64/5.4"},
		{"debian/12/x86_64/{release}", "/k/6.1.btf", "debian/12/x86_64/6.1"},
		{"arch/-/x86_64/6.9", "/k/some.btf", "arch/-/x86_64/6.9"},
		{"rhel/8/{arch}/{release}", "/k/aarch64/4.18.0.btf.tar.xz", "rhel/8/aarch64/4.18.0"},
		{"rhel/8/{arch}", "/k/other/4.18.0.btf", ""},
		{"rhel/{version}/{arch}", "/k/8.4/x86_64/4.18.btf", "rhel/8.4/x86_64/4.18"},
		{"{id}/{version}/x86_64", "/k/rhel/8/4.18.btf", "rhel/8/x86_64/4.18"},
		{"{release}/vmlinux=fedora/40/x86_64", "/k/6.8.5-301.fc40.x86_64/vmlinux", "fedora/40/x86_64/6.8.5-301.fc40.x86_64"},
		{"{release}/vmlinux=fedora/40/x86_64", "/k/6.8.5/vmlinuz", ""},
		{"{id}_{version}_{release}={id}/{version}/arm64/{release}", "/k/ubuntu_20.04_5.4.0-42-generic_64k.btf.xz", "ubuntu/20.04/arm64/5.4.0-42-generic_64k"},
		{"{id}-{version}-{arch}-{release}={id}/{version}/{arch}", "/k/opensuse-15.5-x86_64-5.14.21-default.btf", "opensuse/15.5/x86_64/5.14.21-default"},
		{"*-amd64=debian/12/x86_64", "/k/6.1.0-47-amd64.btf", "debian/12/x86_64/6.1.0-47-amd64"},
		{"*-amd64=debian/12/x86_64", "/k/6.1.0-47-arm64.btf", ""},
		{"stable/*=debian/12/x86_64", "/k/unstable/6.1.btf", ""},
		{"stable/*=debian/12/x86_64", "stable/6.1.btf", "debian/12/x86_64/6.1"},
		{"a.c/*=debian/12/x86_64", "/abc/6.1.btf", ""},
		{"debian/12/x86_64/{release}", "/k/" + strings.Repeat("x", 300), "debian/12/x86_64/-"},
	} {
		n, err := Parse(tt.naming)
		if err != nil {
			t.Errorf("%s: %v", tt.naming, err)
			continue
		}
		got := ""
		if k, ok := n.Key(tt.path); ok {
			got = k.String()
		}
		if got != tt.want {
			t.Errorf("%s: %s is %q, want %q", tt.naming, tt.path, got, tt.want)
		}
	}
}

func TestBadRules(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", "want ID/VERSION_ID/ARCH"},
		{"debian/12", "want ID/VERSION_ID/ARCH"},
		{"a/b/c/d/e", "want ID/VERSION_ID/ARCH"},
		{"debian/12/-", "only VERSION_ID may be missing"},
		{"debian//x86_64", "only VERSION_ID may be missing"},
		{"debian/12/..", "only VERSION_ID may be missing"},
		{"debian/12/{release}", "{release} stands where only {arch} or a name can"},
		{"debian/12/x*", "x* stands where only {arch} or a name can"},
		{"debian/12\t/x86_64", "bad character"},
		{"=debian/12/x86_64", `"" is not the end of a path`},
		{"a//b=debian/12/x86_64", `"a//b" is not the end of a path`},
		{"../b=debian/12/x86_64", `"../b" is not the end of a path`},
		{"{vers}/*=debian/12/x86_64", "unknown {vers}"},
		{"*=debian/{version}/x86_64", "{version} is not in *"},
		{"{version}/*=debian/12/x86_64", "has {version}, but debian/12/x86_64 does not"},
		{"{release}=debian/12/x86_64/6.1", "has {release}, but"},
		{"{version}/{version}=debian/{version}/x86_64", "more than once"},
	} {
		if n, err := Parse(tt.text); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, %v; want %q", tt.text, n, err, tt.want)
		}
	}
}
