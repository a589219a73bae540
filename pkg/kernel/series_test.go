// SPDX-License-Identifier: Apache-2.0

package kernel

import "testing"

func TestSeries(t *testing.T) {
	for release, want := range map[string]string{
		"6.1.0-47-amd64":             "6.1-amd64",
		"6.1.0-47-rt-amd64":          "6.1-rt-amd64",
		"6.12.107+deb13-cloud-amd64": "6.12-deb13-cloud-amd64",
		"4.18.0-147.el8.aarch64":     "4.18-el8-aarch64",
		"a12-5.10-2021-09-arm64":     "a12-5.10-arm64",
		"7.3-amd64":                  "7.3-amd64",
		"5-rc1-10":                   "5-rc1-10",
		"vmlinux":                    "vmlinux",
		"":                           "",
	} {
		k := Key{ID: "Debian", VersionID: "12", Arch: "amd64", Release: release}
		if got := k.Series(); got != (Key{ID: "debian", VersionID: "12", Arch: "x86_64", Release: want}) {
			t.Errorf("%s: %v, want release %s", release, got, want)
		}
	}
}

func TestLinux(t *testing.T) {
	for release, want := range map[string]string{
		"6.1.0-47-amd64":                       "6.1.0-47-amd64",
		"5.10.43-android12-9-00005-g740f7fbe5": "5.10.43-android12-9-00005-g740f7fbe5",
		"a12-5.10-2021-09-arm64":               "5.10-2021-09-arm64",
		"android14-11-6.1":                     "6.1",
		"vmlinux_5.15.104":                     "5.15.104",
		"a12-2021-09":                          "",
		"build5.10":                            "",
		"x-5.":                                 "",
		"x-5":                                  "",
		"vmlinux":                              "",
		"":                                     "",
	} {
		if got := (Key{Release: release}).Linux(); got != want {
			t.Errorf("%s: %q, want %q", release, got, want)
		}
	}
}
