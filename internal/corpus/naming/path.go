// SPDX-License-Identifier: Apache-2.0

package naming

import (
	"path"
	"path/filepath"
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

// Sources are what the user named, as cleaned paths with slashes.
type Sources map[string]bool

// Below returns the part of a path that determines the key: the path below its source, preceded by the last names of the source that layout
// returns. If several sources contain a path, the outermost counts. Folders above the source and the working directory do not.
func (s Sources) Below(p string) string {
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
	case len(names) >= 3 && known(up(3)) && Numbered(up(2)) && kernel.KnownArch(up(1)):
		n = 3
	case len(names) >= 2 && known(up(2)) && Numbered(up(1)):
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
		} else if up(3) != "" && (known(up(3)) || Numbered(up(2))) {
			k.ID, k.VersionID = up(3), up(2)
		}
	case archFromRelease(k.Release) == "":
	case known(up(2)) && Numbered(up(1)):
		k.ID, k.VersionID, k.Arch = up(2), up(1), archFromRelease(k.Release)
	case known(up(1)):
		k.ID, k.Arch = up(1), archFromRelease(k.Release)
	}
	if k.Validate() != nil {
		return kernel.Key{Release: ValidRelease(k.Release)}
	}
	return k.Canonical()
}

// HostKey completes the key of a kernel of this machine: the running kernel, whose release is known, or one in /boot or /lib/modules. Keys of
// other files do not change.
func HostKey(abs string, k kernel.Key) kernel.Key {
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
		host.Key.Release = k.Release
	}
	return host.Key
}

// Within says whether path is dir or below it.
func Within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// KernelKey is keyFromPath, completed by what is known of package trees.
func KernelKey(p string) kernel.Key {
	k := keyFromPath(p)
	if rel := ReleaseFromTree(p); rel != "" {
		k.Release = rel
	}
	return k
}

// ModuleKey is the key of the kernel that a module's file, or an archive of modules, belongs to.
func ModuleKey(p string) kernel.Key {
	if rel := ReleaseFromTree(p); rel != "" {
		return kernel.Key{Release: rel}
	}
	if IsModulesArchive(path.Base(p)) {
		return keyFromPath(p)
	}
	return keyFromPath(path.Dir(p)) // <release>/<module>.btf
}
