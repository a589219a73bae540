// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/btfgen/btfgen/pkg/kernel"
)

// Info says who made an archive of what.
type Info struct {
	Tool        string        // name and version of the program that wrote it
	Shard       Shard         // which part of a run it is
	Objects     []Object      // that the BTFs were minimized for, sorted by name
	Relocations []Relocations // of the objects for each arch, sorted by arch
}

// RelocationsFor returns the start of the hash of the relocations that kernels of
// an arch, in whatever spelling, were minimized for; nil if that is unknown. It
// belongs to the Info.
func (i *Info) RelocationsFor(arch string) []byte {
	arch = kernel.CanonicalArch(arch)
	var sum []byte
	for _, r := range i.Relocations {
		if r.Arch == arch {
			return r.Sum
		}
		if r.Arch == "" {
			sum = r.Sum
		}
	}
	return sum
}

// Shard is one of N parts of a run, numbered from 1. The zero value is a whole
// run.
type Shard struct{ Index, N int }

// String returns "3/10".
func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Index, s.N) }

// Relocations identifies what the BTFs of one arch were minimized for. Archives
// of which it is the same serve the same programs.
type Relocations struct {
	Arch string // canonical; empty for every arch that has no entry of its own
	// Sum begins the sha256 of the distinct relocations of the objects for that
	// arch. Archives keep 4 bytes of it.
	Sum []byte
}

// Object is a BPF object that an archive serves.
type Object struct {
	Name string
	// Sum begins the sha256 of the object's file. Archives keep 4 bytes of it.
	Sum []byte
	// Arches are the machines that the object is for, canonical and sorted. It is
	// for any if there are none.
	Arches []string
}

// Is reports whether data is the object, by as much of its hash as there is: one of four billion others passes for it.
func (o Object) Is(data []byte) bool {
	sum := sha256.Sum256(data)
	return len(o.Sum) > 0 && bytes.HasPrefix(sum[:], o.Sum)
}

// String returns "name (sha256 0123456789abcdef…)", with ", for arm64, x86_64" if it is not for any machine.
func (o Object) String() string {
	s := o.Name + " (sha256 " + hex.EncodeToString(o.Sum) + "…)"
	if len(o.Arches) > 0 {
		s += ", for " + strings.Join(o.Arches, ", ")
	}
	return s
}

// Kernel is a kernel and its minimized BTF.
type Kernel struct {
	Key kernel.Key
	BTF []byte
}
