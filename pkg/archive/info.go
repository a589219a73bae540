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

// Info describes how an archive was made. In JSON, fields are only added.
type Info struct {
	Tool        string        `json:"tool"`           // name and version of the program that wrote the archive
	Shard       Shard         `json:"shard,omitzero"` // the part of a run that the archive has
	Relocations []Relocations `json:"relocations"`    // the relocations of the objects, sorted by arch
	Objects     []Object      `json:"objects"`        // the BPF objects that the BTF was minimized for, sorted by name
}

// Hex is bytes that JSON has in hexadecimal.
type Hex []byte

// MarshalText implements [encoding.TextMarshaler].
func (h Hex) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (h *Hex) UnmarshalText(text []byte) (err error) {
	*h, err = hex.AppendDecode(nil, text)
	return err
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
type Shard struct {
	Index int `json:"index"`
	N     int `json:"n"`
}

// String returns "3/10".
func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Index, s.N) }

// Relocations identifies the relocations that the BTF of one arch was minimized
// for. Two archives with equal Relocations for an arch serve the same programs on that
// arch.
type Relocations struct {
	// Arch is spelled as by kernel.CanonicalArch; "" is for all without an entry of their own.
	Arch string `json:"arch,omitempty"`
	// Sum is the first bytes of relolog.Hash of the objects for that arch. Archives keep
	// 8 bytes.
	Sum Hex `json:"sha256_prefix"`
}

// Object is a BPF object that the BTF of an archive was minimized for.
type Object struct {
	Name string `json:"name"`
	// Sum is the first bytes of the SHA-256 of the object file. Archives keep 4 bytes.
	Sum Hex `json:"sha256_prefix"`
	// Arches are the machines that the object is for, as kernel.CanonicalArch spells
	// them, sorted. None means any.
	Arches []string `json:"arches"`
	// Fingerprint identifies the object's relocations: objects with the same ones but other
	// code have the same fingerprint. Archives keep 4 bytes. It is empty if unknown.
	Fingerprint Hex `json:"fingerprint,omitempty"`
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
	out := []string{}
	for _, a := range arches {
		out = append(out, kernel.CanonicalArch(a))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// String returns "name (sha256 01234567…)", followed by ", for arm64, x86_64" if the
// object has Arches. Without a Name it is "the object". Characters of names that are not
// printable are escaped, as in Go.
func (o Object) String() string {
	s := cmp.Or(o.Name, "the object") + " (sha256 " + hex.EncodeToString(o.Sum) + "…)"
	if len(o.Arches) > 0 {
		s += ", for " + strings.Join(o.Arches, ", ")
	}
	return btfa.Printable(s)
}

// Kernel is a kernel and its minimized BTF.
type Kernel struct {
	Key kernel.Key
	BTF []byte
}
