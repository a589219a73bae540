// SPDX-License-Identifier: Apache-2.0

package naming

import (
	"path"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/pkg/kernel"
)

// ValidRelease returns r if a key can have it as its release, else "".
func ValidRelease(r string) string {
	if (kernel.Key{Release: r}).Validate() != nil {
		return ""
	}
	return r
}

// archFromRelease returns the architecture at the end of releases such as 6.1.0-47-amd64,
// 4.18.0-147.el8.aarch64 and a12-5.10-2021-09-arm64, or "".
func archFromRelease(release string) string {
	if i := strings.LastIndexAny(release, "-."); i >= 0 && kernel.KnownArch(release[i+1:]) {
		return release[i+1:]
	}
	return ""
}

// suffixes are the suffixes of file names, which are not part of a release or a module's name. Content shows how it is wrapped.
var suffixes = append(slices.Clone(Compressions),
	".tar", ".tgz", ".txz", ".tzst", ".btf", ".modules", ".ko", ".elf", ".efi", ".debug")

// Compressions are the suffixes of compressed files.
var Compressions = []string{".xz", ".gz", ".zst", ".bz2", ".lz4", ".lzma"}

// Stem cuts all known suffixes off a name.
func Stem(name string) string {
	for cut := true; cut; {
		cut = false
		for _, s := range suffixes {
			if len(name) > len(s) && strings.HasSuffix(name, s) {
				name, cut = name[:len(name)-len(s)], true
			}
		}
	}
	return name
}

// StripCompression cuts the suffixes of compressed files off a name.
func StripCompression(base string) string {
	for _, s := range Compressions {
		base = strings.TrimSuffix(base, s)
	}
	return base
}

// imageNames are names that kernel files have, alone or in front of "-<release>".
var imageNames = []string{"vmlinux", "vmlinuz", "bzImage", "zImage", "Image", "kernel"}

// packageNames are the beginnings of the names of kernel packages, in front of a release.
var packageNames = []string{
	"linux-image-unsigned-", "linux-image-", "linux-binary-", "linux-modules-extra-", "linux-modules-", "linux-base-",
	"kernel-modules-core-", "kernel-modules-extra-", "kernel-modules-", "kernel-core-", "kernel-default-",
	"kernel-debuginfo-", "kernel-default-debuginfo-", "kernel-",
}

// releaseFromName returns the kernel release in a file name: the name without suffixes for
// 6.1.0-47-amd64.btf.tar.xz, vmlinuz-6.1.0-47-amd64 or linux-image-6.1.0-47-amd64_6.1-1_amd64.deb; "" for vmlinux and other images.
func releaseFromName(name string) string {
	if pkg, ok := cutPackage(name); ok {
		for _, p := range packageNames {
			if r, ok := strings.CutPrefix(pkg, p); ok && StartsWithDigit(r) {
				return r
			}
		}
		return ""
	}
	name = Stem(name)
	for _, p := range imageNames {
		if name == p {
			return ""
		}
		if r, ok := strings.CutPrefix(name, p+"-"); ok {
			return digitFirst(r)
		}
	}
	return name
}

// digitFirst returns r if it starts with a digit, else "": vmlinuz-6.9.1 has a release in its name, vmlinuz-linux does not.
func digitFirst(r string) string {
	if !StartsWithDigit(r) {
		return ""
	}
	return r
}

// cutPackage returns a Debian or RPM package's file name without its suffix and, for Debian,
// without the package's own version and architecture.
func cutPackage(name string) (string, bool) {
	if s, ok := strings.CutSuffix(name, ".rpm"); ok {
		return s, true
	}
	for _, suffix := range []string{".deb", ".ddeb"} { // Ubuntu's packages with debug information
		if s, ok := strings.CutSuffix(name, suffix); ok {
			s, _, _ = strings.Cut(s, "_")
			for _, end := range []string{"-dbgsym", "-dbg", "-unsigned"} {
				s = strings.TrimSuffix(s, end)
			}
			return s, true
		}
	}
	return "", false
}

// ReleaseFromTree returns the release of a kernel package's member: the directory below
// lib/modules, or what follows the name of an image in boot.
func ReleaseFromTree(p string) string {
	if _, after, ok := strings.Cut("/"+p, "/lib/modules/"); ok {
		rel, rest, ok := strings.Cut(after, "/")
		if ok && rest != "" {
			return ValidRelease(rel)
		}
	}
	base := path.Base(p)
	for _, n := range imageNames {
		if r, ok := strings.CutPrefix(base, n+"-"); ok {
			return ValidRelease(digitFirst(Stem(r)))
		}
	}
	return ""
}

// ModuleName returns the kernel's name for a module's file: without suffixes, and with "_" for "-".
func ModuleName(p string) string {
	return strings.ReplaceAll(Stem(path.Base(p)), "-", "_")
}

// IsModule says whether a file is called <module>.ko, compressed or not, or <module>.ko.debug.
func IsModule(name string) bool {
	return strings.HasSuffix(strings.TrimSuffix(StripCompression(name), ".debug"), ".ko")
}

// IsModulesArchive reports whether a name is that of an archive or a package without a kernel: of modules or of extras.
func IsModulesArchive(base string) bool {
	if pkg, ok := cutPackage(base); ok {
		return strings.HasPrefix(pkg, "linux-modules-") || strings.HasPrefix(pkg, "kernel-modules-") || IsExtrasPackage(base)
	}
	return strings.Contains(base, ".modules.tar")
}

// IsExtrasPackage reports whether a name is that of a package with only configuration and symbols, which Debian has since 7.2.
func IsExtrasPackage(base string) bool {
	pkg, ok := cutPackage(base)
	return ok && strings.HasPrefix(pkg, "linux-base-")
}

// IsVmlinux reports whether a file is called vmlinux, with any suffix.
func IsVmlinux(abs string) bool { return Stem(path.Base(abs)) == "vmlinux" }

// SaysBTF reports whether a file is named .btf, compressed or not.
func SaysBTF(name string) bool { return strings.Contains(name[len(Stem(name)):], ".btf") }

// Unrelated reports, by name, whether a file of a directory is ignored: hidden files (.git), BTFHub's markers, and the companions of a
// kernel in /boot, whose initramfs holds modules without their kernel. Extras are found by the name of their kernel.
func Unrelated(name string) bool {
	if strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".failed") || strings.HasSuffix(name, ".hasbtf") {
		return true
	}
	for _, p := range []string{"initrd", "initramfs", "System.map", "config-", "symvers"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	extra, _ := ExtraOf(name)
	return extra != NoExtra
}

// StartsWithDigit reports whether s begins with a digit.
func StartsWithDigit(s string) bool { return s != "" && '0' <= s[0] && s[0] <= '9' }

// Numbered reports whether a version can be ordered: 12, 5.4.0-42 and V10 can, sid cannot.
func Numbered(version string) bool { return StartsWithDigit(Unprefixed(version)) }

// Unprefixed cuts off the v of v10.
func Unprefixed(version string) string {
	if len(version) > 1 && version[0]|0x20 == 'v' && StartsWithDigit(version[1:]) {
		return version[1:]
	}
	return version
}

// Extra is a kind of file that comes with a kernel.
type Extra uint8

// Kinds of extras.
const (
	NoExtra Extra = iota
	Config
	Symbols
)

// Suffixes of the names of extras beside a kernel's file.
const (
	ConfigSuffix  = ".config"
	SymbolsSuffix = ".kallsyms"
)

func (k Extra) String() string { return [...]string{"", "config", "symbols"}[k] }

// ExtraOf returns the kind of extra that a file is, by its name, and the release in its path, if any.
func ExtraOf(name string) (kind Extra, release string) {
	base := StripCompression(path.Base(name))
	for prefix, kind := range map[string]Extra{"config": Config, "System.map": Symbols} {
		if r, ok := strings.CutPrefix(base, prefix+"-"); ok {
			return kind, ValidRelease(digitFirst(r))
		}
		if rel := ReleaseFromTree(name); base == prefix && rel != "" {
			return kind, rel
		}
	}
	switch {
	case strings.HasSuffix(base, ConfigSuffix):
		return Config, ""
	case strings.HasSuffix(base, SymbolsSuffix):
		return Symbols, ""
	}
	return NoExtra, ""
}
