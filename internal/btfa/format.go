// SPDX-License-Identifier: Apache-2.0

package btfa

// A file is a header (magic, and a byte for the version) and one zstd frame. The
// frame holds the number of streams, their lengths, and the streams.
const (
	Magic     = "btfa"
	Version   = 1
	HeaderLen = len(Magic) + 1
)

// The streams. Each holds one sort of thing, because like compresses well next
// to like.
const (
	StreamMeta    = iota // who made this of what
	StreamKernels        // keys and their layouts
	StreamNames          // of slots, then of members and enumerators
	StreamShapes         // types without numbers
	StreamParents        // which variant a variant is like
	StreamNumbers        // offsets, sizes, values
	StreamLayouts        // which variants make up a layout
	NumStreams
)

// StreamTexts are the names of the streams.
var StreamTexts = [NumStreams]string{"meta", "kernels", "names", "shapes", "parents", "numbers", "layouts"}

// The limits of a file.
const (
	MaxPayload  = 8 << 20            // bytes decompressed; 5,000 real kernels need about a tenth of it
	MaxFile     = MaxPayload + 1<<16 // bytes; compression never makes the payload longer by more than this
	maxStreams  = 64                 // those that a later writer may have added included
	MaxKernels  = 1 << 18
	MaxKeyBytes = 16 << 20 // of all keys
	MaxShards   = MaxKernels
	MaxObjects  = 1 << 16
	MaxMachines = 64 // that one object is for, and that have relocations of their own

	// MaxItems limits the memory of a reader: slots, variants, and the types, fields
	// and references of shapes.
	MaxItems = 1 << 20
)

// The limits of one layout: how many types it has, and how many bytes of names
// and fields. Real ones have some hundred types.
const (
	MaxTypes   = 1 << 16
	MaxContent = 8 << 20
)

// SumSize is how many bytes an archive keeps of hashes of relocations, by which it is told whether BTFs can be taken over. ObjectSumSize is how
// many it keeps of the sha256 of an object: enough to tell builds apart, since all of them would take more room than the BTF.
const (
	SumSize       = 8
	ObjectSumSize = 4
)

// What a reference in a shape may be. From ToFirst on, even numbers are nodes
// of the definition, odd ones slots.
const (
	ToVoid  = 0
	ToNext  = 1 // the first node that nothing refers to yet
	ToFirst = 2
)

// What the name of a field may be; from NameFirst on, it is one that was there.
const (
	NameNone  = 0
	NameNext  = 1
	NameFirst = 2
)

// What a change in a layout may put into a slot; from VariantFirst on, it is
// a variant that was in a layout before.
const (
	VariantNext  = 0 // the slot's first that no layout had yet
	VariantNone  = 1
	VariantFirst = 2
)

// NoVariant stands for an empty slot in a list of variants by slot.
const NoVariant = -1
