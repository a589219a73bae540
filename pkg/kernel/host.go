// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// HostBTF is the path of the running kernel's own BTF, if it has any.
const HostBTF = "/sys/kernel/btf/vmlinux"

// HostOptions select the system that [Host] describes. The zero value is the running
// system.
type HostOptions struct {
	// Root is the host's root directory, such as "/host" in a container. Links in it are
	// resolved as if it were "/". Empty means "/".
	Root string
	// OSRelease is a file to read instead of the one below Root.
	OSRelease string
	// Release and Arch replace the results of uname, if they are not empty.
	Release, Arch string
}

// System is what a host says of itself.
type System struct {
	Key  Key   // its kernel, canonical
	Like []Key // the distributions that it is derived from, the nearest first: each an ID and, if known, a VersionID
}

// maxLike is the number of distributions in System.Like.
const maxLike = 8

// Host describes the running system: ID and VERSION_ID from the
// host's /etc/os-release, or /usr/lib/os-release if there is none, release and machine
// from uname, which containers share with their host.
//
// Without an os-release file ID and VersionID are empty. If the file has no ID, the ID
// is "linux", as os-release(5) says. A VERSION_ID that cannot be part of a key counts as none. Where builds
// have the same VERSION_ID and release, VersionID has the build, too: "109-17800.147.22" of Container-Optimized OS.
//
// uname says mips and mips64 for both byte orders. Host takes them, also in opts, for the byte order of this program.
//
// Like has the distributions in ID_LIKE, with the version that
// UBUNTU_CODENAME, DEBIAN_CODENAME or VERSION_CODENAME has of Ubuntu and Debian, else with the VERSION_ID.
//
// The error says that a file or root in opts cannot be
// read, that a component is not valid ([Key.Validate]), or that opts lack Release or Arch
// on a system other than Linux.
func Host(opts HostOptions) (System, error) {
	vars, err := hostVars(opts)
	if err != nil {
		return System{}, fmt.Errorf("host: os-release: %w", err)
	}
	k := Key{ID: vars["ID"], VersionID: part(vars["VERSION_ID"]), Release: opts.Release, Arch: opts.Arch}
	if vars != nil && k.ID == "" {
		k.ID = "linux"
	}
	if k.Release == "" || k.Arch == "" {
		release, machine, err := uname()
		if err != nil {
			return System{}, fmt.Errorf("host: uname: %w", err)
		}
		k.Release, k.Arch = cmp.Or(k.Release, release), cmp.Or(k.Arch, machine)
	}
	if little := littleMachines[k.Arch]; little != "" && binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		k.Arch = little
	}
	if err := k.Validate(); err != nil {
		return System{}, fmt.Errorf("host: %w", err)
	}
	k = k.Canonical()
	s := System{Key: k, Like: like(k, vars)}
	if build := part(strings.ReplaceAll(vars[buildNames[k.ID]], "/", "_")); build != "" && k.VersionID != "" && len(k.VersionID)+1+len(build) <= maxName {
		s.Key.VersionID += "-" + build
	}
	return s, nil
}

// part returns a value of os-release, or "" for one that cannot be part of a key.
func part(value string) string {
	if value == absent || CheckName(value) != nil {
		return ""
	}
	return value
}

// like returns the distributions that the host with key k is derived from.
func like(k Key, vars map[string]string) (all []Key) {
	names := strings.Split(part(vars["ID_LIKE"]), " ")
	ubuntu, debian := codenames["ubuntu"][vars["UBUNTU_CODENAME"]], codenames["debian"][vars["DEBIAN_CODENAME"]]
	if debian != "" {
		names = append([]string{"debian"}, names...)
	}
	if ubuntu != "" {
		names = append([]string{"ubuntu"}, names...)
	}
	for _, id := range names {
		id = CanonicalID(id)
		version := k.VersionID
		switch id {
		case "ubuntu":
			version = cmp.Or(ubuntu, codenames[id][vars["VERSION_CODENAME"]])
		case "debian":
			version = cmp.Or(debian, codenames[id][vars["VERSION_CODENAME"]])
		}
		same := func(o Key) bool { return o.ID == id }
		if part(id) != "" && id != k.ID && len(all) < maxLike && !slices.ContainsFunc(all, same) {
			all = append(all, Key{ID: id, VersionID: version})
		}
	}
	return all
}

// hostVars reads the os-release file of the host. It returns nil if there is none.
func hostVars(opts HostOptions) (map[string]string, error) {
	if opts.OSRelease != "" {
		f, err := os.Open(opts.OSRelease)
		if err != nil {
			return nil, err
		}
		return readOSRelease(f)
	}
	root, err := os.OpenRoot(cmp.Or(opts.Root, "/"))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	for _, name := range []string{"etc/os-release", "usr/lib/os-release"} {
		if f, err := openUnder(root, name); err == nil {
			return readOSRelease(f)
		}
	}
	return nil, nil
}

// maxOSRelease limits the size of an os-release file, in bytes.
const maxOSRelease = 1 << 20

// variable is the characters of a variable's name.
const variable = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

// ParseOSRelease returns the variables in the text of an os-release file, such as
// "debian" for ID. Values may be bare or in single or double quotes, as in a shell. The
// last assignment of a variable counts. Other lines are ignored.
func ParseOSRelease(text string) map[string]string {
	vars := make(map[string]string)
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.Trim(line, " \t\n\v\f\r"), "=")
		if ok && name != "" && !isDigit(name[0]) && strings.Trim(name, variable) == "" {
			vars[name] = unquote(value)
		}
	}
	return vars
}

// unquote returns the value of the first shell word in s. The word consists of bare
// pieces and pieces in quotes. In single quotes a backslash is an ordinary character; in
// double quotes it escapes only special characters. A quote ends with the line at the
// latest.
func unquote(s string) string {
	var b strings.Builder
	quote := byte(0)
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == quote && quote != 0:
			quote = 0
		case quote == '\'':
			b.WriteByte(c)
		case c == '\\' && i+1 < len(s) && (quote == 0 || strings.IndexByte("\"\\$`", s[i+1]) >= 0):
			i++
			b.WriteByte(s[i])
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case quote == 0 && (c == ' ' || c == '\t'): // the end of the word
			return b.String()
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// maxLinks is the number of links that Linux follows in a path.
const maxLinks = 40

// openUnder opens a file below root. It follows links as if root were "/". os.Root
// refuses absolute links, which in a container would lead to the container's own files.
func openUnder(root *os.Root, name string) (*os.File, error) {
	done, todo := ".", name // done has no links
	for links := 0; todo != ""; {
		elem, rest, _ := strings.Cut(todo, "/")
		todo = rest
		switch elem {
		case "", ".":
			continue
		case "..":
			done = path.Dir(done)
			continue
		}
		at := path.Join(done, elem)
		to, err := root.Readlink(filepath.FromSlash(at))
		if err != nil { // not a link, or missing, so that Open fails
			done = at
			continue
		}
		if links++; links > maxLinks {
			return nil, errors.New("too many links")
		}
		if path.IsAbs(to) {
			done = "."
		}
		todo = to + "/" + rest
	}
	return root.Open(filepath.FromSlash(done))
}

func readOSRelease(f *os.File) (map[string]string, error) {
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxOSRelease+1))
	if err == nil && len(b) > maxOSRelease {
		err = errors.New("too long for an os-release file")
	}
	return ParseOSRelease(string(b)), err
}
