// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"errors"
	"fmt"
	"os"

	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Source is where [Find] found types.
type Source int

// The sources, in the order in which Find tries them.
const (
	FromFile    Source = iota + 1 // FindOptions.File, or a vmlinux that is installed
	FromKernel                    // the running kernel
	FromArchive                   // FindOptions.Archive
)

var sourceNames = [...]string{"none", "file", "kernel", "archive"}

// String returns "file", "kernel" or "archive", and "none" for the zero value.
func (s Source) String() string {
	if s < 0 || int(s) >= len(sourceNames) {
		return fmt.Sprintf("source %d", int(s))
	}
	return sourceNames[s]
}

// FindOptions are the places where [Find] looks. The zero value is the kernel's own BTF
// only.
type FindOptions struct {
	// File is a file with raw BTF, or an ELF file with a .BTF section, that the user of
	// the tracer named; "" for none.
	File string
	// Archive is the program's own BTF, or nil for none.
	Archive *Archive
	// Object is the BPF object that the types are for. If the archive was not made for its
	// relocations, Find fails with a [*NotCoveredError] instead of using it. nil does not
	// check.
	Object []byte
	// Host selects the kernel to find in the archive. The zero value is the running
	// kernel.
	Host kernel.HostOptions
	// Neighbours is the number of builds before and after a kernel that must agree if
	// the archive lacks the kernel: see [Archive.Lookup]. With 0 such a kernel is a miss,
	// even if it is newer than the archive. Above 0 the BTF may be wrong for the kernel;
	// Match.Rule is NeighbourMatch then.
	Neighbours int
	// Installed looks for the host's release where packages install a vmlinux, such as /boot and /usr/lib/debug below
	// Host.Root, before the archive. Types then has the path of an ELF file with BTF, as for a File.
	Installed bool
	// IgnoreKernel skips the kernel's own BTF, for tests.
	IgnoreKernel bool
}

// Types is the BTF to relocate programs against. For cilium/ebpf, btfspec.Load
// returns the KernelTypes of ProgramOptions. For libbpf and libbpfgo,
// [Types.File] returns a path.
type Types struct {
	Source Source
	Path   string // the file, or the kernel's BTF; "" for FromArchive
	Match  Match  // set for FromArchive; zero otherwise
	BTF    []byte // set for FromArchive; nil otherwise. It belongs to the caller.
}

// NoMatchError is returned by [Find] if the kernel has no BTF, and neither has the
// archive for it. errors.Is reports that it is an [ErrNoKernel].
type NoMatchError struct{ Match Match }

// Error returns the kernel, the reason why no kernel in the archive matches it, and the nearest kernels.
func (e *NoMatchError) Error() string {
	s := fmt.Sprintf("kernel %s has no BTF, and the archive has none for it: %s", btfa.KeyName(e.Match.Want), e.Match.Reason)
	var near []string
	for _, k := range []kernel.Key{e.Match.Below, e.Match.Above} {
		if k != (kernel.Key{}) {
			near = append(near, btfa.KeyName(k))
		}
	}
	switch len(near) {
	case 1:
		s += "; the nearest is " + near[0]
	case 2:
		s += "; the nearest are " + near[0] + " and " + near[1]
	}
	return s
}

// Is reports whether target is ErrNoKernel.
func (e *NoMatchError) Is(target error) bool { return target == ErrNoKernel }

// ErrNoArchive is returned by [Find] if the kernel has no BTF and FindOptions no archive.
var ErrNoArchive = errors.New("the kernel has no BTF, and there is no archive")

// Find finds the types to relocate programs against: FindOptions.File if that is set, else
// the kernel's own BTF if it has any, else, with FindOptions.Installed, that of an installed vmlinux, else the BTF for the host
// in FindOptions.Archive. Find
// checks that the file or the kernel's BTF can be opened, and leaves reading to the loader.
//
// The error is a [*NoMatchError], a [*NotCoveredError] or [ErrNoArchive], or says why the file cannot be
// opened, the host cannot be identified, or the archive cannot be read.
func Find(opts FindOptions) (*Types, error) {
	if opts.File != "" {
		f, err := os.Open(opts.File)
		if err != nil {
			return nil, err
		}
		return &Types{Source: FromFile, Path: opts.File}, f.Close()
	}
	if !opts.IgnoreKernel {
		if f, err := os.Open(kernel.HostBTF); err == nil {
			f.Close()
			return &Types{Source: FromKernel, Path: kernel.HostBTF}, nil
		}
	}
	if opts.Archive == nil && !opts.Installed {
		return nil, ErrNoArchive
	}
	host, err := kernel.Host(opts.Host)
	if err != nil {
		return nil, err
	}
	if opts.Installed {
		if p := findInstalled(opts.Host.Root, host.Key.Release); p != "" {
			return &Types{Source: FromFile, Path: p}, nil
		}
	}
	if opts.Archive == nil {
		return nil, ErrNoArchive
	}
	if opts.Object != nil {
		if err := opts.Archive.Covers(NewObject("", opts.Object, host.Key.Arch)); err != nil {
			return nil, err
		}
	}
	m := opts.Archive.Lookup(host.Key, opts.Neighbours, host.Like...)
	if !m.Found() {
		return nil, &NoMatchError{m}
	}
	b, err := opts.Archive.BTF(m.Key)
	if err != nil {
		return nil, err
	}
	return &Types{Source: FromArchive, Match: m, BTF: b}, nil
}
