package rawbtf

import (
	"encoding/binary"

	"github.com/btfgen/btfgen/internal/btfenc"
)

// The words of the format, which package btfenc defines.
type (
	TypeID  = btfenc.TypeID
	Kind    = btfenc.Kind
	Builder = btfenc.Builder
)

// The kinds of include/uapi/linux/btf.h.
const (
	KindVoid      = btfenc.KindVoid
	KindInt       = btfenc.KindInt
	KindPtr       = btfenc.KindPtr
	KindArray     = btfenc.KindArray
	KindStruct    = btfenc.KindStruct
	KindUnion     = btfenc.KindUnion
	KindEnum      = btfenc.KindEnum
	KindFwd       = btfenc.KindFwd
	KindTypedef   = btfenc.KindTypedef
	KindVolatile  = btfenc.KindVolatile
	KindConst     = btfenc.KindConst
	KindRestrict  = btfenc.KindRestrict
	KindFunc      = btfenc.KindFunc
	KindFuncProto = btfenc.KindFuncProto
	KindVar       = btfenc.KindVar
	KindDatasec   = btfenc.KindDatasec
	KindFloat     = btfenc.KindFloat
	KindDeclTag   = btfenc.KindDeclTag
	KindTypeTag   = btfenc.KindTypeTag
	KindEnum64    = btfenc.KindEnum64

	numKinds = btfenc.NumKinds
)

// Bits of the encoding of an INT.
const (
	IntSigned = btfenc.IntSigned
	IntChar   = btfenc.IntChar
	IntBool   = btfenc.IntBool
)

// NewBuilder returns a Builder that writes in the given byte order.
func NewBuilder(order binary.ByteOrder) *Builder { return btfenc.NewBuilder(order) }

const (
	magic        = btfenc.Magic
	version      = btfenc.Version
	minHeaderLen = btfenc.HeaderLen
	hdrWords     = 3 // struct btf_type, 32-bit words
)
