// SPDX-License-Identifier: Apache-2.0

package naming

import (
	"path"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/pkg/kernel"
)

func TestKeyFromPath(t *testing.T) {
	for _, tt := range []struct {
		path string
		want string
	}{
		// BTFHub's shape, however deep the source is.
		{"/data/corpus/debian/12/x86_64/6.1.0-47-amd64.btf.tar.xz", "debian/12/x86_64/6.1.0-47-amd64"},
		{"debian/12/x86_64/6.1.0-47-amd64.btf.zst", "debian/12/x86_64/6.1.0-47-amd64"},
		{"/x/centos/8/aarch64/4.18.0-147.5.1.el8_1.aarch64.btf", "centos/8/arm64/4.18.0-147.5.1.el8_1.aarch64"},
		{"/x/debian/bullseye/amd64/5.10.0-30-amd64.btf.xz", "debian/bullseye/x86_64/5.10.0-30-amd64"},
		{"/x/own/2024/arm64/6.6.1.btf", "own/2024/arm64/6.6.1"},
		{"/x/modules/debian/13/s390x/6.12.107+deb13-s390x.modules.tar.xz", "debian/13/s390x/6.12.107+deb13-s390x"},
		{"/x/testdata/7.1/x86_64/vmlinux.btf", "testdata/7.1/x86_64/-"},
		// Levels that are missing.
		{"/data/ubuntu/x86_64/5.4.0-42-generic.btf", "ubuntu/-/x86_64/5.4.0-42-generic"},
		{"/data/debian/11/5.10.0-30-amd64.btf.tar.xz", "debian/11/x86_64/5.10.0-30-amd64"},
		{"/data/android/a12-5.10-2021-09-arm64.btf.tar.xz", "android/-/arm64/a12-5.10-2021-09-arm64"},
		{"/data/amazon/2/5.10.118-111.515.amzn2.x86_64.btf", "amzn/2/x86_64/5.10.118-111.515.amzn2.x86_64"},
		{"/x86_64/5.4.btf", "-/-/x86_64/5.4"},
		// Files outside of any layout.
		{"/home/me/arch/work/foo.btf", "-/-/-/foo"},
		{"/tmp/6.1.0-47-amd64.btf", "-/-/-/6.1.0-47-amd64"},
		{"vmlinux", "-/-/-/-"},
		{"/boot/vmlinuz-linux", "-/-/-/-"},
		{"a/../../../x86_64/6.1.btf", "-/-/x86_64/6.1"},
		{"/boot/vmlinuz-6.1.0-47-amd64", "-/-/-/6.1.0-47-amd64"},
		// Packages.
		{"/p/linux-image-6.12.107+deb13-s390x_6.12.107-1_s390x.deb", "-/-/-/6.12.107+deb13-s390x"},
		{"/p/linux-image-6.1.0-47-amd64-unsigned_6.1.170-1_amd64.deb", "-/-/-/6.1.0-47-amd64"},
		{"/p/linux-image-unsigned-6.8.0-31-generic_6.8.0-31.31_amd64.deb", "-/-/-/6.8.0-31-generic"},
		{"/p/linux-modules-extra-6.8.0-31-generic_6.8.0-31.31_amd64.deb", "-/-/-/6.8.0-31-generic"},
		{"/p/linux-binary-7.3.4+deb13-cloud-amd64_7.3.4-1_amd64.deb", "-/-/-/7.3.4+deb13-cloud-amd64"},
		{"/p/linux-image-amd64_6.1_amd64.deb", "-/-/-/-"},
		{"/p/linux-image-6.1.0-47-amd64-dbg_6.1.170-3_amd64.deb", "-/-/-/6.1.0-47-amd64"},
		{"/p/linux-image-unsigned-5.4.0-42-generic-dbgsym_5.4.0-42.46_amd64.ddeb", "-/-/-/5.4.0-42-generic"},
		{"/p/kernel-debuginfo-4.18.0-80.el8.x86_64.rpm", "-/-/-/4.18.0-80.el8.x86_64"},
		{"/p/kernel-debuginfo-common-x86_64-4.18.0-80.el8.x86_64.rpm", "-/-/-/-"},
		{"/p/kernel-default-debuginfo-5.3.18-24.1.x86_64.rpm", "-/-/-/5.3.18-24.1.x86_64"},
		{"/p/fedora/40/x86_64/kernel-core-6.8.5-301.fc40.x86_64.rpm", "fedora/40/x86_64/6.8.5-301.fc40.x86_64"},
		{"/p/kernel-modules-core-6.8.5-301.fc40.x86_64.rpm", "-/-/-/6.8.5-301.fc40.x86_64"},
	} {
		if got := keyFromPath(tt.path).String(); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.path, got, tt.want)
		}
	}
}

// The key comes from the path below the source, or from the last names of the source that begin a layout.
func TestKeyBelowSource(t *testing.T) {
	const rel = "6.1.0-47-amd64.btf"
	for _, tt := range []struct{ sources, path, want string }{
		{"kernels", "kernels/x86_64/" + rel, "x86_64/" + rel},
		{"/home/fedora/kernels", "/home/fedora/kernels/x86_64/" + rel, "x86_64/" + rel},
		{"/home/fedora/x86_64", "/home/fedora/x86_64/" + rel, "x86_64/" + rel},
		{"/home/fedora/" + rel, "/home/fedora/" + rel, rel},
		{"/home/fedora/x86_64/" + rel, "/home/fedora/x86_64/" + rel, rel},
		{"build/out/arm64/vmlinux.btf", "build/out/arm64/vmlinux.btf", "vmlinux.btf"},
		{"build", "build/out/arm64/vmlinux.btf", "out/arm64/vmlinux.btf"},
		{".", "debian/12/x86_64/" + rel, "debian/12/x86_64/" + rel},
		{"..", "../12/x86_64/" + rel, "12/x86_64/" + rel},
		{"../debian/12", "../debian/12/x86_64/" + rel, "debian/12/x86_64/" + rel},
		{"/", "/debian/12/x86_64/" + rel, "debian/12/x86_64/" + rel},
		{"hub/debian", "hub/debian/bullseye/x86_64/" + rel, "debian/bullseye/x86_64/" + rel},
		{"hub/debian/12", "hub/debian/12/x86_64/" + rel, "debian/12/x86_64/" + rel},
		{"hub/debian/12/amd64/", "hub/debian/12/amd64/" + rel, "debian/12/amd64/" + rel},
		{"hub/debian/12/amd64/" + rel, "hub/debian/12/amd64/" + rel, "debian/12/amd64/" + rel},
		{"hub/debian/bullseye", "hub/debian/bullseye/x86_64/" + rel, "x86_64/" + rel},
		{"hub/own/12/amd64", "hub/own/12/amd64/" + rel, "amd64/" + rel},
		{"hub/own", "hub/own/12/amd64/" + rel, "12/amd64/" + rel},
		{"hub hub/debian/bullseye", "hub/debian/bullseye/x86_64/" + rel, "debian/bullseye/x86_64/" + rel},
		{"/lib/modules/6.1/vmlinuz", "/lib/modules/6.1/vmlinuz", "lib/modules/6.1/vmlinuz"},
		{"root/usr/lib/modules", "root/usr/lib/modules/6.1/vmlinuz", "lib/modules/6.1/vmlinuz"},
	} {
		all := make(Sources)
		for _, s := range strings.Fields(tt.sources) {
			all[path.Clean(s)] = true
		}
		if got := all.Below(tt.path); got != tt.want {
			t.Errorf("%s of %s: got %s, want %s", tt.path, tt.sources, got, tt.want)
		}
	}
	for p, want := range map[string]string{
		"out/arm64/vmlinux.btf": "-/-/arm64/-", "build/out/arm64/vmlinux.btf": "-/-/arm64/-", "build/out/arm64/6.1.btf": "-/-/arm64/6.1",
		"fedora/kernels/6.8.5-301.fc40.x86_64.btf": "-/-/-/6.8.5-301.fc40.x86_64",
	} {
		if got := keyFromPath(p).String(); got != want {
			t.Errorf("%s: got %s, want %s", p, got, want)
		}
	}
}

func TestDistrosAreCanonical(t *testing.T) {
	for d := range distros {
		if kernel.CanonicalID(d) != d {
			t.Errorf("%s is not found by its canonical name %s", d, kernel.CanonicalID(d))
		}
	}
}

func TestReleaseFromTree(t *testing.T) {
	for path, want := range map[string]string{
		"boot/vmlinuz-6.1.0-47-amd64":                            "6.1.0-47-amd64",
		"boot/vmlinux-6.12.107+deb13-powerpc64le":                "6.12.107+deb13-powerpc64le",
		"lib/modules/6.8.5-301.fc40.x86_64/vmlinuz":              "6.8.5-301.fc40.x86_64",
		"usr/lib/modules/6.1.7/kernel/net/nf_conntrack.ko.xz":    "6.1.7",
		"/lib/modules/6.1.7/kernel/net/nf_conntrack.ko":          "6.1.7",
		"lib/modules/6.1.7":                                      "",
		"kernel-core-6.8.5-301.fc40.x86_64.rpm":                  "",
		"boot/vmlinuz":                                           "",
		"6.1.0-47-amd64.btf":                                     "",
		"debian/12/x86_64/6.1.0-47-amd64.btf.tar.xz":             "",
		"usr/lib/debug/boot/vmlinux-6.1.0-47-amd64":              "6.1.0-47-amd64",
		"usr/lib/debug/lib/modules/6.1.0-47-amd64/vmlinux":       "6.1.0-47-amd64",
		"usr/lib/debug/boot/vmlinux-5.3.18-24-default.debug":     "5.3.18-24-default",
		"lib/modules/..\x01/vmlinuz":                             "",
		"boot/vmlinuz-6.1.0-47-amd64.efi":                        "6.1.0-47-amd64",
		"usr/lib/modules/6.9.1-arch1-1/kernel/fs/xfs/xfs.ko.zst": "6.9.1-arch1-1",
	} {
		if got := ReleaseFromTree(path); got != want {
			t.Errorf("%q: got %q, want %q", path, got, want)
		}
	}
}

func TestModuleName(t *testing.T) {
	for path, want := range map[string]string{
		"6.1.0/nf_conntrack.btf": "nf_conntrack",
		"dm-mod.ko.xz":           "dm_mod",
		"/sys/kernel/btf/kvm":    "kvm",
		"a/b/nvme-core.btf.zst":  "nvme_core",
	} {
		if got := ModuleName(path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

func TestHostKey(t *testing.T) {
	host, err := kernel.Host(kernel.HostOptions{})
	if err != nil {
		t.Skip("needs a host whose release and distribution are known: ", err)
	}
	for path, release := range map[string]string{
		"/sys/kernel/btf/vmlinux": host.Key.Release, "/boot/vmlinuz-1.2.3": "1.2.3", "/boot/vmlinuz": "",
		"/usr/lib/modules/1.2.3/vmlinuz": "1.2.3",
	} {
		want := host.Key
		want.Release = release
		if got := HostKey(path, KernelKey(path)); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
	if got := HostKey("/mnt/boot/vmlinuz-1.2.3", KernelKey("/mnt/boot/vmlinuz-1.2.3")); got != (kernel.Key{Release: "1.2.3"}) {
		t.Errorf("another machine's kernel: %s", got)
	}
}
