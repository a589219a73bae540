// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"os"
)

// HostBTF is where a running kernel that has its own BTF shows it.
const HostBTF = "/sys/kernel/btf/vmlinux"

// HostOptions say where Host looks. The zero value is the system that the
// program runs on.
type HostOptions struct {
	// Root is where the host's root directory is, for programs in a container:
	// "/host". Links in it are followed as if it were "/". Empty means "/".
	Root string
	// OSRelease is a file to read instead of the one under Root.
	OSRelease string
	// Release and Arch stand for what uname tells, when not empty.
	Release, Arch string
}

// Host returns the key of the running kernel: ID and VERSION_ID from the
// host's /etc/os-release, or /usr/lib/os-release if there is none, release and
// machine from uname, which containers share with their host. The spelling is
// that of Key.Canonical.
//
// Without an os-release file ID and VersionID are empty, and one without ID has
// the ID "linux", as its specification says. It is an error if a file or root
// that is named in opts cannot be read, and on other systems than Linux if opts
// do not have both Release and Arch.
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
