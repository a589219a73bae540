// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestDistributions reads the os-release files of distributions. Some lack lines that
// Host does not need.
func TestDistributions(t *testing.T) {
	want := map[string]string{
		"debian": "debian/12", "debian-sid": "debian/-", "ubuntu": "ubuntu/22.04", "fedora": "fedora/39",
		"rhel": "rhel/8.5", "centos": "centos/8", "centos7": "centos/7", "rocky": "rocky/9.3",
		"almalinux": "almalinux/8.9", "oracle": "ol/8.6", "amazon2": "amzn/2", "amazon2023": "amzn/2023",
		"sles": "sles/15.3", "opensuse-leap": "opensuse-leap/15.5", "opensuse-tumbleweed": "opensuse-tumbleweed/20240115",
		"arch": "arch/-", "alpine": "alpine/3.19.0", "flatcar": "flatcar/3602.2.0", "bottlerocket": "bottlerocket/1.15.1",
		"kylin": "kylin/V10", "openeuler": "openeuler/22.03", "nixos": "nixos/23.11", "void": "void/-",
	}
	files, err := filepath.Glob("testdata/os-release/*")
	if err != nil || len(files) != len(want) {
		t.Fatalf("%d files for %d distributions (%v)", len(files), len(want), err)
	}
	for _, f := range files {
		host, err := Host(HostOptions{OSRelease: f, Release: "6.1.0", Arch: "amd64"})
		if err != nil {
			t.Error(err)
			continue
		}
		if got, want := host.Key.String(), want[filepath.Base(f)]+"/x86_64/6.1.0"; got != want {
			t.Errorf("%s: got %s, want %s", f, got, want)
		}
	}
}

func TestParseOSRelease(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		{`ID=debian`, "debian"},
		{`ID="debian"`, "debian"},
		{`ID='debian'`, "debian"},
		{"ID=debian\r", "debian"},
		{"  ID=debian  ", "debian"},
		{`ID=debian # a comment`, "debian"},
		{`ID="a b"`, "a b"},
		{`ID="a\"b\$c\\d\e"`, `a"b$c\d\e`},
		{`ID='a\"b'`, `a\"b`},
		{`ID=a\ b`, "a b"},
		{`ID="a"'b'c`, "abc"},
		{`ID=`, ""},
		{`ID=""`, ""},
		{`ID="open`, "open"},
		{`ID=\`, `\`},
		{"ID=first\nID=last", "last"},
		{"ID=debian\n#ID=other", "debian"},
		{"ID=debian\nID =other\n=x\nnonsense\n9ID=x", "debian"},
		{"\n\nID=debian", "debian"},
		{"ID=debian\u00a0", "debian\u00a0"}, // no space to a shell
	} {
		if got := ParseOSRelease(tt.line)["ID"]; got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.line, got, tt.want)
		}
	}
	if v := ParseOSRelease("a=1\n9b=2\nc-d=3\n"); len(v) != 1 {
		t.Errorf("variables are %v", v)
	}
}

// tree writes a small root directory.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		p := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
			t.Fatal(err)
		}
		var err error
		if to, ok := strings.CutPrefix(text, "-> "); ok {
			err = os.Symlink(to, p)
		} else {
			err = os.WriteFile(p, []byte(text), 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestHostRoot(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "os-release")
	if err := os.WriteFile(outside, []byte("ID=container\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"etc", map[string]string{"etc/os-release": "ID=a\nVERSION_ID=1\n", "usr/lib/os-release": "ID=b\n"}, "a/1"},
		{"usr", map[string]string{"usr/lib/os-release": "ID=b\n"}, "b/-"},
		{"link", map[string]string{"etc/os-release": "-> ../usr/lib/os-release", "usr/lib/os-release": "ID=b\n"}, "b/-"},
		{"link outside", map[string]string{"etc/os-release": "-> " + outside, "usr/lib/os-release": "ID=b\n"}, "b/-"},
		{"absolute link", map[string]string{"etc/os-release": "-> /etc/static/os-release", "etc/static": "-> /store/etc", "store/etc/os-release": "ID=nixos\n"}, "nixos/-"},
		{"link above", map[string]string{"etc/os-release": "-> ../../../usr/lib/os-release", "usr/lib/os-release": "ID=b\n"}, "b/-"},
		{"loop", map[string]string{"etc/os-release": "-> os-release", "usr/lib/os-release": "ID=b\n"}, "b/-"},
		{"nothing", map[string]string{"etc/passwd": ""}, "-/-"},
		{"no ID", map[string]string{"etc/os-release": "NAME=x\n"}, "linux/-"},
		{"alias", map[string]string{"etc/os-release": "ID=Amazon\n"}, "amzn/-"},
	} {
		host, err := Host(HostOptions{Root: tree(t, tt.files), Release: "6.1", Arch: "aarch64"})
		k := host.Key
		if err != nil || k.String() != tt.want+"/arm64/6.1" {
			t.Errorf("%s: got %s, want %s (%v)", tt.name, k, tt.want, err)
		}
	}
}

func TestHostErrors(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	long := tree(t, map[string]string{"x": strings.Repeat("#", maxOSRelease+1)})
	for _, opts := range []HostOptions{
		{Root: none, Release: "6", Arch: "x86_64"},
		{OSRelease: none, Release: "6", Arch: "x86_64"},
		{OSRelease: filepath.Join(long, "x"), Release: "6", Arch: "x86_64"},
		{Root: tree(t, map[string]string{"etc/os-release": "ID=../..\n"}), Release: "6", Arch: "x86_64"},
		{Root: tree(t, nil), Release: "6/1", Arch: "x86_64"},
	} {
		if s, err := Host(opts); err == nil {
			t.Errorf("%+v: got %s", opts, s.Key)
		}
	}
}

func TestHostUname(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux")
	}
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		t.Skip("needs /proc: ", err)
	}
	host, err := Host(HostOptions{Root: tree(t, nil)})
	k := host.Key
	if err != nil || k.Release != strings.TrimSpace(string(release)) || k.Arch == "" {
		t.Errorf("got %s (%v), release is %s", k, err, release)
	}
	if k.Arch != CanonicalArch(k.Arch) {
		t.Errorf("arch %s is not canonical", k.Arch)
	}
}
