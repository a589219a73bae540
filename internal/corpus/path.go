// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/pkg/kernel"
)

// distros are the IDs of distributions in BTFHub's trees and os-release. They show that a tree lacks a level: in ubuntu/x86_64/5.4.0.btf the
// directory above x86_64 is the distribution and not its version.
var distros = map[string]bool{
	"almalinux": true, "alpine": true, "amzn": true, "android": true, "arch": true, "bclinux": true,
	"bottlerocket": true, "centos": true, "cos": true, "debian": true, "fedora": true,
	"flatcar": true, "kylin": true, "manjaro": true, "ol": true, "openeuler": true,
	"opensuse-leap": true, "opensuse-tumbleweed": true, "photon": true, "rhel": true,
	"rocky": true, "sles": true, "talos": true, "ubuntu": true, "void": true,
}

func known(id string) bool { return distros[kernel.CanonicalID(id)] }

// sources are what the user named, as cleaned paths with slashes.
type sources map[string]bool

// below returns the part of a path that determines the key: the path below its source, preceded by the last names of the source that layout
// returns. If several sources contain a path, the outermost counts. Folders above the source and the working directory do not.
func (s sources) below(p string) string {
	p = path.Clean(filepath.ToSlash(p))
	dir := path.Dir(p)
	for at := p; ; at = path.Dir(at) {
		if s[at] && at != p {
			dir = at
		}
		if at == "." || at == "/" || path.Base(at) == ".." {
			break
		}
	}
	return path.Join(layout(dir, s[dir]), strings.TrimPrefix(strings.TrimPrefix(p, strings.TrimSuffix(dir, "/")), "/"))
}

// layout returns the names at the end of a folder's path that clearly begin a layout: ID/VERSION_ID/ARCH or ID/VERSION_ID with a known
// distribution and a version with a number, or lib/modules/…; of a source also its last name alone, if that is a distribution or an
// architecture.
func layout(dir string, source bool) string {
	if i := strings.LastIndex("/"+dir+"/", "/lib/modules/"); i >= 0 {
		return dir[i:]
	}
	names := strings.Split(dir, "/")
	up := func(n int) string { return names[max(len(names)-n, 0)] }
	n := 0
	switch {
	case len(names) >= 3 && known(up(3)) && numbered(up(2)) && kernel.KnownArch(up(1)):
		n = 3
	case len(names) >= 2 && known(up(2)) && numbered(up(1)):
		n = 2
	case source && (known(up(1)) || kernel.KnownArch(up(1))):
		n = 1
	}
	return path.Join(names[len(names)-n:]...)
}

// keyFromPath returns the key from the end of a slash-separated path, complete or not. It understands
// <ID>/<VERSION_ID>/<arch>/<release>.btf, and <ID>/<arch>/…, <ID>/<VERSION_ID>/… and <ID>/…, where the architecture is that at the end of
// the release. If the ID is not a known distribution or a level is missing, the version has to begin with a number. Otherwise only
// the release is set, from the file name, and the architecture.
func keyFromPath(p string) kernel.Key {
	dirs := strings.Split(path.Clean(p), "/")
	name := dirs[len(dirs)-1]
	dirs = dirs[:len(dirs)-1]
	k := kernel.Key{Release: releaseFromName(name)}
	up := func(n int) string { // the n-th directory above the file
		if n > len(dirs) {
			return ""
		}
		return dirs[len(dirs)-n]
	}
	switch {
	case kernel.KnownArch(up(1)):
		k.Arch = up(1)
		if known(up(2)) && !known(up(3)) {
			k.ID = up(2)
		} else if up(3) != "" && (known(up(3)) || numbered(up(2))) {
			k.ID, k.VersionID = up(3), up(2)
		}
	case archFromRelease(k.Release) == "":
	case known(up(2)) && numbered(up(1)):
		k.ID, k.VersionID, k.Arch = up(2), up(1), archFromRelease(k.Release)
	case known(up(1)):
		k.ID, k.Arch = up(1), archFromRelease(k.Release)
	}
	if k.Validate() != nil {
		return kernel.Key{Release: validRelease(k.Release)}
	}
	return k.Canonical()
}

func validRelease(r string) string {
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
var suffixes = append(slices.Clone(compressions),
	".tar", ".tgz", ".txz", ".tzst", ".btf", ".modules", ".ko", ".elf", ".efi", ".debug")

// compressions are the suffixes of compressed files.
var compressions = []string{".xz", ".gz", ".zst", ".bz2", ".lz4", ".lzma"}

// stem cuts all known suffixes off a name.
func stem(name string) string {
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
			if r, ok := strings.CutPrefix(pkg, p); ok && startsWithDigit(r) {
				return r
			}
		}
		return ""
	}
	name = stem(name)
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
	if !startsWithDigit(r) {
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

// releaseFromTree returns the release of a kernel package's member: the directory below
// lib/modules, or what follows the name of an image in boot.
func releaseFromTree(p string) string {
	if _, after, ok := strings.Cut("/"+p, "/lib/modules/"); ok {
		rel, rest, ok := strings.Cut(after, "/")
		if ok && rest != "" {
			return validRelease(rel)
		}
	}
	base := path.Base(p)
	for _, n := range imageNames {
		if r, ok := strings.CutPrefix(base, n+"-"); ok {
			return validRelease(digitFirst(stem(r)))
		}
	}
	return ""
}

// moduleName returns the kernel's name for a module's file: without suffixes, and with "_" for "-".
func moduleName(p string) string {
	return strings.ReplaceAll(stem(path.Base(p)), "-", "_")
}

// startsWithDigit reports whether s begins with a digit.
func startsWithDigit(s string) bool { return s != "" && '0' <= s[0] && s[0] <= '9' }

// hostKey completes the key of a kernel of this machine: the running kernel, whose release is known, or one in /boot or /lib/modules. Keys of
// other files do not change.
func hostKey(abs string, k kernel.Key) kernel.Key {
	running := abs == kernel.HostBTF
	if !running && !strings.HasPrefix(abs, "/boot/") && !strings.HasPrefix(abs, "/lib/modules/") &&
		!strings.HasPrefix(abs, "/usr/lib/modules/") {
		return k
	}
	host, err := kernel.Host(kernel.HostOptions{})
	if err != nil {
		return k
	}
	if !running {
		host.Release = k.Release
	}
	return host
}

// within says whether path is dir or below it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// unrelated reports, by name, whether a file of a directory is ignored: hidden files (.git), BTFHub's markers, and the companions of a
// kernel in /boot, whose initramfs holds modules without their kernel. Extras are found by the name of their kernel.
func unrelated(name string) bool {
	if strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".failed") || strings.HasSuffix(name, ".hasbtf") {
		return true
	}
	for _, p := range []string{"initrd", "initramfs", "System.map", "config-", "symvers"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	extra, _ := extraOf(name)
	return extra != noExtra
}

// saysBTF reports whether a file is named .btf, compressed or not.
func saysBTF(name string) bool { return strings.Contains(name[len(stem(name)):], ".btf") }

// isModuleFile says whether a file is called <module>.ko, compressed or not, or <module>.ko.debug.
func isModuleFile(name string) bool {
	return strings.HasSuffix(strings.TrimSuffix(stripCompression(name), ".debug"), ".ko")
}

// kernelKey is keyFromPath, completed by what is known of package trees.
func kernelKey(p string) kernel.Key {
	k := keyFromPath(p)
	if rel := releaseFromTree(p); rel != "" {
		k.Release = rel
	}
	return k
}

// moduleKey is the key of the kernel that a module's file, or an archive of modules, belongs to.
func moduleKey(p string) kernel.Key {
	if rel := releaseFromTree(p); rel != "" {
		return kernel.Key{Release: rel}
	}
	if modulesArchive(path.Base(p)) {
		return keyFromPath(p)
	}
	return keyFromPath(path.Dir(p)) // <release>/<module>.btf
}

func isVmlinux(abs string) bool { return stem(path.Base(abs)) == "vmlinux" }

// modulesArchive reports whether a name is that of an archive or a package without a kernel: of modules or of extras.
func modulesArchive(base string) bool {
	if pkg, ok := cutPackage(base); ok {
		return strings.HasPrefix(pkg, "linux-modules-") || strings.HasPrefix(pkg, "kernel-modules-") || extrasPackage(base)
	}
	return strings.Contains(base, ".modules.tar")
}

// extrasPackage reports whether a name is that of a package with only configuration and symbols, which Debian has since 7.2.
func extrasPackage(base string) bool {
	pkg, ok := cutPackage(base)
	return ok && strings.HasPrefix(pkg, "linux-base-")
}

// stripCompression cuts the suffixes of compressed files off a name.
func stripCompression(base string) string {
	for _, s := range compressions {
		base = strings.TrimSuffix(base, s)
	}
	return base
}

// numbered reports whether a version can be ordered: 12, 5.4.0-42 and V10 can, sid cannot.
func numbered(version string) bool { return startsWithDigit(unprefixed(version)) }

// extraKind identifies one of the extras.
type extraKind uint8

const (
	noExtra extraKind = iota
	extraConfig
	extraSymbols
)

func (k extraKind) String() string { return [...]string{"", "config", "symbols"}[k] }

// Suffixes of the names of extras beside a kernel's file.
const (
	ConfigSuffix  = ".config"
	SymbolsSuffix = ".kallsyms"
)

// extraOf returns the kind of extra that a file is, by its name, and the release in its path, if any.
func extraOf(name string) (kind extraKind, release string) {
	base := stripCompression(path.Base(name))
	for prefix, kind := range map[string]extraKind{"config": extraConfig, "System.map": extraSymbols} {
		if r, ok := strings.CutPrefix(base, prefix+"-"); ok {
			return kind, validRelease(digitFirst(r))
		}
		if rel := releaseFromTree(name); base == prefix && rel != "" {
			return kind, rel
		}
	}
	switch {
	case strings.HasSuffix(base, ConfigSuffix):
		return extraConfig, ""
	case strings.HasSuffix(base, SymbolsSuffix):
		return extraSymbols, ""
	}
	return noExtra, ""
}

// unprefixed cuts off the v of v10.
func unprefixed(version string) string {
	if len(version) > 1 && version[0]|0x20 == 'v' && startsWithDigit(version[1:]) {
		return version[1:]
	}
	return version
}
