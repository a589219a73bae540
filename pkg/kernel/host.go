// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"os"
)

// HostBTF is the path of the running kernel's own BTF, if it has any.
const HostBTF = "/sys/kernel/btf/vmlinux"

// HostOptions select the system that [Host] describes. The zero value is the system
// that the program runs on.
type HostOptions struct {
	// Root is the path of the host's root directory, such as "/host" in a container.
	// Links in it are resolved as if it were "/". Empty means "/".
	Root string
	// OSRelease is the path of a file to read instead of the one below Root.
	OSRelease string
	// Release and Arch replace the results of uname, if they are not empty.
	Release, Arch string
}

// Host returns the key of the running kernel: ID and VERSION_ID from the
// host's /etc/os-release, or /usr/lib/os-release if there is none, release and
// machine from uname, which containers share with their host. The spelling is
// that of Key.Canonical.
//
// Without an os-release file ID and VersionID are empty. If the file has no ID, the
// ID is "linux", as os-release(5) says. It is an error if a file or root in opts
// cannot be read, if a component is not valid ([Key.Validate]), and on other systems
// than Linux if opts do not have both Release and Arch.
func Host(opts HostOptions) (Key, error) {
	vars, err := hostVars(opts)
	if err != nil {
		return Key{}, fmt.Errorf("host: os-release: %w", err)
	}
	k := Key{ID: vars["ID"], VersionID: vars["VERSION_ID"], Release: opts.Release, Arch: opts.Arch}
	if vars != nil && k.ID == "" {
		k.ID = "linux"
	}
	if k.Release == "" || k.Arch == "" {
		release, machine, err := uname()
		if err != nil {
			return Key{}, fmt.Errorf("host: uname: %w", err)
		}
		if k.Release == "" {
			k.Release = release
		}
		if k.Arch == "" {
			k.Arch = machine
		}
	}
	if err := k.Validate(); err != nil {
		return Key{}, fmt.Errorf("host: %w", err)
	}
	return k.Canonical(), nil
}

func hostVars(opts HostOptions) (map[string]string, error) {
	if opts.OSRelease == "" {
		root := opts.Root
		if root == "" {
			root = "/"
		}
		return osRelease(root)
	}
	f, err := os.Open(opts.OSRelease)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readOSRelease(f)
}
