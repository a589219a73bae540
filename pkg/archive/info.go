// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Info describes how an archive was made.
type Info struct {
	Tool        string        // name and version of the program that wrote the archive
	Shard       Shard         // the part of a run that the archive has
	Objects     []Object      // the BPF objects that the BTF was minimized for, sorted by name
	Relocations []Relocations // the relocations of the objects, sorted by arch
}

// RelocationsFor returns the Sum of the relocations that the kernels of an arch, in
// any spelling, were minimized for, or nil if it is unknown. The slice is part of
// the Info.
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

// Shard is one of N parts of a run. Index counts from 1. The zero value is a whole run.
type Shard struct{ Index, N int }

// String returns "3/10".
func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Index, s.N) }

// Relocations identifies the relocations that the BTF of one arch was minimized
// for. Two archives with equal Relocations for an arch serve the same programs on that
// arch.
type Relocations struct {
	Arch string // as kernel.CanonicalArch spells it; "" for all without an entry of their own
	// Sum is the first bytes of relolog.Hash of the objects for that arch. Archives keep
	// 8 bytes.
	Sum []byte
}

// Object is a BPF object that the BTF of an archive was minimized for.
type Object struct {
	Name string
	// Sum is the first bytes of the SHA-256 of the object file. Archives keep 4 bytes.
	Sum []byte
	// Fingerprint identifies the object's relocations: objects with the same ones but other
	// code have the same fingerprint. Archives keep 4 bytes. It is empty if unknown.
	Fingerprint []byte
	// Arches are the machines that the object is for, as kernel.CanonicalArch spells
	// them, sorted. None means any.
	Arches []string
}

// NewObject returns the Object for a BPF object file with this name and content. The
// arches are those of the machines that the object is for, in any spelling; none means
// any machine. NewObject does not keep data. The fingerprint of data that is not a BPF
// object is empty.
func NewObject(name string, data []byte, arches ...string) Object {
	sum := sha256.Sum256(data)
	fingerprint, _ := btfa.Fingerprint(data)
	return Object{Name: name, Sum: sum[:btfa.ObjectSumSize:btfa.ObjectSumSize], Fingerprint: fingerprint, Arches: canonicalArches(arches)}
}

func canonicalArches(arches []string) []string {
	var out []string
	for _, a := range arches {
		out = append(out, kernel.CanonicalArch(a))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// String returns "name (sha256 01234567…)", followed by ", for arm64, x86_64" if the
// object has Arches. Without a Name it is "the object".
func (o Object) String() string {
	s := cmp.Or(o.Name, "the object") + " (sha256 " + hex.EncodeToString(o.Sum) + "…)"
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
