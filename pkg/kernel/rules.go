// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"slices"
	"strings"
)

// The tables of this file say in what distributions differ. The readers in C, Rust and Python have the same tables;
// testdata/btfa/hosts.txt has hosts for their lines, with sources.

// arches maps each spelling of an architecture to BTFHub's, or to that of uname -m if
// BTFHub has none. A 32-bit program on an arm64 kernel gets armv8l from uname; 32-bit kernels on the same processors say
// armv7l. mipseb and mips64eb are big-endian for sure, see [Host].
var arches = map[string]string{
	"x86_64": "x86_64", "amd64": "x86_64", "x86": "x86_64", "x86-64": "x86_64",
	"arm64": "arm64", "aarch64": "arm64", "armv8l": "arm64",
	"arm": "arm", "armhf": "arm", "armel": "arm", "armhfp": "arm", "armv4tl": "arm", "armv5tel": "arm", "armv5tejl": "arm", "armv6l": "arm",
	"armv7": "arm", "armv7l": "arm", "armv7hl": "arm",
	"i386": "i386", "i486": "i386", "i586": "i386", "i686": "i386", "386": "i386",
	"ppc64le": "ppc64le", "ppc64el": "ppc64le", "ppc64": "ppc64", "s390x": "s390x", "sparc64": "sparc64",
	"riscv64": "riscv64", "riscv": "riscv64", "loongarch64": "loongarch64", "loong64": "loongarch64",
	"mips": "mips", "mipseb": "mips", "mipsel": "mipsel", "mips64": "mips64", "mips64eb": "mips64", "mips64el": "mips64el", "mips64le": "mips64el",
}

// littleMachines maps what uname -m says on MIPS kernels of either byte order to the little-endian arch.
var littleMachines = map[string]string{"mips": "mipsel", "mips64": "mips64el"}

// ids maps other names of distributions to the ID in os-release.
var ids = map[string]string{"amazon": "amzn", "redhat": "rhel", "oracle": "ol", "suse": "sles", "opensuse": "opensuse-leap"}

// codenames has the versions of distributions that others are derived from.
var codenames = map[string]map[string]string{
	"debian": {"stretch": "9", "buster": "10", "bullseye": "11", "bookworm": "12", "trixie": "13", "forky": "14"},
	"ubuntu": {
		"xenial": "16.04", "bionic": "18.04", "focal": "20.04", "groovy": "20.10", "hirsute": "21.04", "impish": "21.10",
		"jammy": "22.04", "kinetic": "22.10", "lunar": "23.04", "mantic": "23.10", "noble": "24.04", "oracular": "24.10",
		"plucky": "25.04", "questing": "25.10",
	},
}

// buildNames has the variable of os-release in which builds differ that have one VERSION_ID and one release.
var buildNames = map[string]string{"cos": "BUILD_ID", "openwrt": "OPENWRT_BOARD"}

// versionNumbers is how many numbers of VERSION_ID stay the same from build to build. All parts of VERSION_ID do under other distributions.
var versionNumbers = map[string]int{
	"alpine": 2, "bottlerocket": 0, "cos": 1, "flatcar": 0, "coreos": 0, "k3os": 0, "opensuse-microos": 0, "opensuse-tumbleweed": 0,
	"rhcos": 0, "talos": 0,
}

// plainWords are words of releases that many distributions use, without the digits at their ends.
var plainWords = []string{
	"", "cloud", "custom", "debug", "default", "desktop", "dirty", "generic", "hardened", "kvm", "lts", "mainline", "pae", "preempt",
	"rc", "rt", "server", "smp", "standard", "vanilla", "virt", "yocto", "zen",
}

// countedWords are words of releases whose number at the end counts builds, as in 6.9.1-arch1-1.
var countedWords = []string{"alt", "arch", "hardened", "kali", "r", "rpi", "xanmod", "zen"}

// ownBuilds has distributions that build kernels of their own whose releases end like those of others.
var ownBuilds = [][2]string{
	{"alpine", "-lts"}, {"arch", "-lts"}, {"artix", "-lts"}, {"astra", "-generic"}, {"astra", "-hardened"}, {"kylin", "-generic"},
}

// words cuts a release into its words, and leaves out the commit and build that kernels built from git have, as in
// 5.10.43-00005-g740f7fbe5 and 5.10.43-android12-9-00005-g740f7fbe5-ab7943734.
func words(release string) []string {
	all := strings.FieldsFunc(release, func(r rune) bool { return strings.ContainsRune("-.+_~", r) })
	var kept []string
	for i, w := range all {
		switch {
		case isNumber(w) && i+1 < len(all) && isCommit(all[i+1]): // commits since the last tag
		case isCommit(w):
		case len(w) > 2 && w[:2] == "ab" && isNumber(w[2:]):
		default:
			kept = append(kept, w)
		}
	}
	return kept
}

func isCommit(w string) bool {
	return len(w) >= 8 && w[0] == 'g' && strings.Trim(w[1:], "0123456789abcdef") == ""
}

func isNumber(w string) bool { return strings.Trim(w, "0123456789") == "" }

// Distinctive reports whether a release can belong to builds of one distribution only: it has four numbers, or a word
// that is not common, such as 6.1.0-47-amd64 and 5.15.106-flatcar. Plain releases are those of Linux itself, such as
// 5.10.135, 6.13.0-rc1 or 6.6.9-amd64. Builds of several distributions have them.
func (k Key) Distinctive() bool {
	numbers, last := 0, ""
	for _, w := range words(k.Release) {
		if isNumber(w) {
			// Debian's i386 releases have the word 586 or 686, and x86_64 is the words x86 and 64.
			if w != "586" && w != "686" && (w != "64" || last != "x86") {
				numbers++
			}
		} else if !KnownArch(w) && !slices.Contains(plainWords, strings.TrimRight(lower(w), "0123456789")) {
			return true
		}
		last = w
	}
	return numbers >= 4
}

// BuiltBy reports whether a distribution builds kernels of its own with releases like this one, which other
// distributions have, too. Such a kernel serves only hosts of the distribution, and of those that are derived from it.
func (k Key) BuiltBy(id string) bool {
	return slices.ContainsFunc(ownBuilds, func(o [2]string) bool { return o[0] == id && strings.HasSuffix(k.Release, o[1]) })
}

// OneBuild reports whether the version names a single build, as in "109-17800.147.22" of Container-Optimized OS. Other
// builds of the distribution may have the same release.
func (k Key) OneBuild() bool {
	return buildNames[CanonicalID(k.ID)] != "" && strings.Contains(k.VersionID, "-")
}

// Series returns the key that all builds of one series share: distribution, version
// and arch, and of the release its first two numbers and all words that are not
// numbers, such as "6.1-rt-amd64" for 6.1.0-47-rt-amd64. Builds of a series differ in
// the other numbers. Other flavours and other versions of Linux have other structs, so
// they are other series. Where each build is a version of the distribution, the version does not count.
func (k Key) Series() Key {
	k = k.Canonical()
	if n, ok := versionNumbers[k.ID]; ok {
		k.VersionID = leading(k.VersionID, n)
	}
	release := ""
	numbers, last := 0, false // last reports whether the word before is a number
	for _, w := range words(k.Release) {
		number := isNumber(w)
		if number {
			if numbers++; numbers > 2 {
				continue
			}
		} else if t := strings.TrimRight(w, "0123456789"); slices.Contains(countedWords, t) {
			w = t
		}
		switch {
		case release == "":
		case number && last:
			release += "."
		default:
			release += "-"
		}
		release += w
		last = number
	}
	k.Release = release
	return k
}

// leading returns a version up to the end of its nth number.
func leading(version string, n int) string {
	end := 0
	for i := 0; i < len(version) && n > 0; {
		digit := isDigit(version[i])
		for i < len(version) && isDigit(version[i]) == digit {
			i++
		}
		if digit {
			n--
			end = i
		}
	}
	return version[:end]
}
