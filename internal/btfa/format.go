// SPDX-License-Identifier: Apache-2.0

// Package btfa has the constants, streams and number codes of the .btfa format, and
// reads and checks the file around the streams. pkg/archive reads and writes their
// content. docs/archive-format.md specifies the format.
package btfa

import (
	"errors"
	"strings"

	"github.com/btfgen/btfgen/pkg/kernel"
)

// A file is a header (magic and a byte for the version) and one zstd frame. The frame
// holds the number of streams, their lengths, and the streams.
const (
	Magic     = "btfa"
	Version   = 1
	HeaderLen = len(Magic) + 1
)

// The streams. Similar data compresses better side by side, so each stream has one
// sort of data.
const (
	StreamMeta    = iota // the tool, the relocations and the objects
	StreamKernels        // keys and their layouts
	StreamNames          // names of slots, then of members and enumerators
	StreamShapes         // types without numbers
	StreamParents        // the parent of each variant
	StreamNumbers        // offsets, sizes, values
	StreamLayouts        // the variants of each layout

	StreamFingerprints // one hash per object; absent if unknown
	NumStreams

	minStreams = StreamFingerprints
)

// StreamTexts are the names of the streams.
var StreamTexts = [NumStreams]string{"meta", "kernels", "names", "shapes", "parents", "numbers", "layouts", "fingerprints"}

// The limits of a file.
const (
	MaxPayload  = 8 << 20            // bytes decompressed; 5,000 real kernels need about a tenth of it
	MaxFile     = MaxPayload + 1<<16 // bytes; compression never adds more than this to a payload
	maxStreams  = 64                 // including those of later versions
	MaxKernels  = 1 << 18
	MaxKeyBytes = 16 << 20 // bytes of all keys together
	MaxShards   = MaxKernels
	MaxObjects  = 1 << 16
	MaxMachines = 64      // machines of one object, and machines with relocations of their own
	MaxItems    = 1 << 20 // slots, variants, and types, fields and references of shapes; limits a reader's memory
)

// The limits of one layout: types, and bytes of names and fields. Real layouts have
// some hundred types.
const (
	MaxTypes   = 1 << 16
	MaxContent = 8 << 20
)

// MaxBTFs is the limit of the bytes of all layouts together, for readers of a whole
// archive.
const MaxBTFs = 256 << 20

// SumSize is the number of bytes that an archive keeps of a hash of relocations, and
// ObjectSumSize of the SHA-256 of an object. Whole hashes would take more room than the
// BTF.
const (
	SumSize       = 8
	ObjectSumSize = 4
)

// A reference in a shape. From ToFirst on, even numbers are nodes of the definition,
// and odd ones slots.
const (
	ToVoid  = 0
	ToNext  = 1 // the first node without a reference to it
	ToFirst = 2
)

// The name of a field. From NameFirst on it is a name that another field had before.
const (
	NameNone  = 0
	NameNext  = 1
	NameFirst = 2
)

// The new content of a slot in a layout. From VariantFirst on it is a variant that a
// layout had before.
const (
	VariantNext  = 0 // the slot's first variant that no layout had before
	VariantNone  = 1
	VariantFirst = 2
)

// NoVariant is an empty slot in a list of variants by slot.
const NoVariant = -1

// KeyText returns the text of a key, by which kernels are sorted and stored.
func KeyText(k kernel.Key) string {
	return k.ID + "/" + k.VersionID + "/" + k.Arch + "/" + k.Release
}

// ParseKey is the inverse of KeyText. It refuses the keys that CheckKey refuses.
func ParseKey(s string) (kernel.Key, error) {
	parts := strings.Split(s, "/")
	if len(parts) != 4 {
		return kernel.Key{}, errors.New("not a key")
	}
	k := kernel.Key{ID: parts[0], VersionID: parts[1], Arch: parts[2], Release: parts[3]}
	return k, CheckKey(k)
}

// CheckKey returns an error if a key is not valid or no host can look it up. The error does not name the key.
func CheckKey(k kernel.Key) error {
	switch {
	case k.Release == "":
		return errors.New("no release")
	case k.Arch == "":
		return errors.New("no arch, so that no host finds it")
	}
	return k.Validate()
}

// units are the units of bit offsets. A packed offset uses the largest one that divides
// it, and has its index in the two lowest bits.
var units = [4]int64{1, 8, 32, 64}

// PackOffset encodes a difference of bit offsets, which has at most 36 bits.
func PackOffset(d int64) uint64 {
	if d == 0 {
		return 0
	}
	u := len(units) - 1
	for d%units[u] != 0 {
		u--
	}
	return Zigzag(d/units[u])<<2 | uint64(u)
}

// UnpackOffset is the inverse of PackOffset.
func UnpackOffset(v uint64) int64 { return Unzigzag(v>>2) * units[v&3] }

// Zigzag maps numbers near zero to small ones: 0, -1, 1, -2 to 0, 1, 2, 3.
func Zigzag(d int64) uint64 { return uint64(d)<<1 ^ uint64(d>>63) }

// Unzigzag is the inverse of Zigzag.
func Unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }
