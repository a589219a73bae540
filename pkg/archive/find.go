// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"errors"
	"fmt"
	"os"

	"github.com/btfgen/btfgen/pkg/kernel"
)

// Source is where types were found.
type Source int

// The sources, in the order in which Find tries them.
const (
	FromFile    Source = iota + 1 // the file that the user named
	FromKernel                    // the running kernel
	FromArchive                   // the archive
)

var sourceNames = [...]string{"nowhere", "file", "kernel", "archive"}

// String returns "file", "kernel" or "archive".
func (s Source) String() string { return sourceNames[s] }

// Options say what Find may take. The zero value is the kernel's own BTF or
// nothing.
type Options struct {
	// File is what the user named: raw BTF, or an ELF file with a .BTF section.
	File string
	// Archive is what the program brings along: an *Archive, a *Tree, or nil.
	Archive Finder
	// Host says which kernel to look for in the archive.
	Host kernel.HostOptions
	// Neighbours is how many builds before and after a kernel that the archive lacks
	// must agree for their BTF to be taken: see [Archive.Lookup]. With 0 such a
	// kernel is a miss, also a build that is newer than the archive. Above 0 the BTF
	// may be wrong for the kernel; Match.Rule is NeighbourMatch then.
	Neighbours int
	// IgnoreKernel passes over the kernel's own BTF, for tests.
	IgnoreKernel bool
}

// Types is the BTF to relocate programs against. How a loader gets it:
//
//   - cilium/ebpf: btfspec.Load(types), into KernelTypes of ProgramOptions;
//   - libbpf and libbpfgo: the path of types.File().
type Types struct {
	Source Source
	Path   string // of the file; of the kernel's BTF; empty for the archive's
	Match  Match  // of the archive; zero otherwise
	BTF    []byte // of the archive; nil otherwise. It belongs to the caller.
}

// NoMatchError says that Find found no types, because the kernel has none and
// the archive not this kernel. It is an ErrNoKernel.
type NoMatchError struct{ Match Match }

// Error names the kernel, and says why the archive has nothing for it.
func (e *NoMatchError) Error() string {
	return fmt.Sprintf("kernel %s has no BTF, and the archive has none for it: %s", e.Match.Want, e.Match.Reason)
}

// Is reports whether target is ErrNoKernel.
func (e *NoMatchError) Is(target error) bool { return target == ErrNoKernel }

// ErrNoArchive is returned by [Find] if the kernel has no BTF and Options no archive.
var ErrNoArchive = errors.New("the kernel has no BTF, and there is no archive")

// Find finds the types to relocate programs against: the file that the user
// named, else the kernel's own BTF, else the archive's for this host. A file
// that was named but cannot be opened is an error: it is not passed over. What is
// in it is left to the loader. What was taken stands in the result.
func Find(opts Options) (*Types, error) {
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
	if opts.Archive == nil {
		return nil, ErrNoArchive
	}
	k, err := kernel.Host(opts.Host)
	if err != nil {
		return nil, err
	}
	m := opts.Archive.Lookup(k, opts.Neighbours)
	if !m.Found() {
		return nil, &NoMatchError{m}
	}
	b, err := opts.Archive.BTF(m.Key)
	if err != nil {
		return nil, err
	}
	return &Types{Source: FromArchive, Match: m, BTF: b}, nil
}
