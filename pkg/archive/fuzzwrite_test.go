// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/btf/canonical"
	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/internal/testing/testminimized"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// emptyBTF is the size in bytes of BTF without types: a header and the empty
// string.
const emptyBTF = btf.HeaderLen + 1

// FuzzRewrite reads archives that no writer made, and writes their kernels again. The
// result does not change when it is written once more.
func FuzzRewrite(f *testing.F) {
	for _, kernels := range [][]archive.Kernel{nil, testminimized.Kernels(f)[:1], testminimized.Kernels(f)} {
		payload, err := btfa.Unpack(mustWrite(f, kernels)[btfa.HeaderLen:])
		if err != nil {
			f.Fatal(err)
		}
		f.Add(payload)
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		a, err := archive.Open(framed(payload))
		if err != nil {
			return
		}
		for _, k := range a.Keys() {
			b, err := a.BTF(k)
			if err != nil || len(b) == emptyBTF {
				continue
			}
			again := rewritten(t, []archive.Kernel{{Key: k, BTF: b}})
			if c, err := again.BTF(k); err == nil {
				d := rewritten(t, []archive.Kernel{{Key: k, BTF: c}})
				if e, err := d.BTF(k); err != nil || !bytes.Equal(e, c) {
					t.Fatalf("%s: changed when written again: %v\n%x\n%x", k, err, c, e)
				}
			}
		}
	})
}

// FuzzWrite writes BTFs of random types in canonical order and compares them with what it
// reads.
func FuzzWrite(f *testing.F) {
	for seed := range 32 {
		b := make([]byte, 40*seed)
		x := uint32(seed)
		for i := range b {
			x = x*1664525 + 1013904223
			b[i] = byte(x >> 24)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var kernels []archive.Kernel
		for i := 0; len(data) > 0 && i < 8; i++ {
			var types []*canonical.Type
			types, data = randomTypes(data)
			order := binary.ByteOrder(binary.LittleEndian)
			if i%3 == 2 {
				order = binary.BigEndian
			}
			k := kernel.Key{ID: "a", Arch: "x86_64", Release: fmt.Sprint(i)}
			kernels = append(kernels, archive.Kernel{Key: k, BTF: encoded(t, types, order)})
		}
		a := rewritten(t, kernels)
		for _, k := range kernels {
			if b, err := a.BTF(k.Key); err != nil || !bytes.Equal(b, k.BTF) {
				t.Fatalf("%s: %v\n%x\n%x", k.Key, err, k.BTF, b)
			}
		}
	})
}

// randomTypes derives types from data, including some that pkg/minimize never writes:
// cycles of anonymous types, several types with one name, copies.
func randomTypes(data []byte) ([]*canonical.Type, []byte) {
	next := func() int {
		if len(data) == 0 {
			return 0
		}
		b := data[0]
		data = data[1:]
		return int(b)
	}
	kinds := []btf.Kind{
		btf.KindInt, btf.KindPtr, btf.KindArray, btf.KindStruct, btf.KindUnion, btf.KindEnum,
		btf.KindFwd, btf.KindTypedef, btf.KindFuncProto, btf.KindFloat, btf.KindEnum64,
		btf.KindVolatile, btf.KindConst, btf.KindRestrict, btf.KindTypeTag, btf.KindFunc, btf.KindVar,
	}
	types := make([]*canonical.Type, 1+next()%20)
	ref := func() int { return next()%(len(types)+1) - 1 }
	word := func() uint32 { return uint32(next()*next()*next()) << (next() % 9) }
	signed := func() uint32 { return word() * uint32(1-2*(next()&1)) }
	for i := range types {
		o := &canonical.Type{Kind: kinds[next()%len(kinds)], Flag: next()%4 == 0, Copies: next() % 3, Order: next() % 4}
		if n := next() % 6; n > 0 && (o.Kind.Shape().Named || o.Kind == btf.KindTypeTag || o.Kind == btf.KindFunc || o.Kind == btf.KindVar) {
			o.Name = string(rune('a' + n))
		} else {
			o.Copies = 0
		}
		fields := next() % 5
		name := func() string { return []string{"", "x", "y", "zz", "longer_name"}[next()%5] }
		switch o.Kind {
		case btf.KindInt:
			o.Size, o.Fields = uint32(next()), []canonical.Field{{Lo: word()}}
		case btf.KindFloat:
			o.Size = uint32(next())
		case btf.KindPtr, btf.KindTypedef, btf.KindVolatile, btf.KindConst, btf.KindRestrict, btf.KindTypeTag:
			o.Refs = []int{ref()}
		case btf.KindFunc, btf.KindVar:
			o.Fields, o.Refs = []canonical.Field{{Lo: uint32(next() % 3)}}, []int{ref()}
		case btf.KindArray:
			o.Fields, o.Refs = []canonical.Field{{Lo: word()}}, []int{ref(), ref()}
		case btf.KindStruct, btf.KindUnion:
			o.Size = word()
			for range fields {
				f := canonical.Field{Name: name(), Lo: word()}
				if !o.Flag {
					f.Lo &= 0xffffff
				}
				o.Fields, o.Refs = append(o.Fields, f), append(o.Refs, ref())
			}
		case btf.KindEnum, btf.KindEnum64:
			o.Size = uint32(next())
			for range fields {
				f := canonical.Field{Name: name(), Lo: signed()}
				if f.Hi = signed(); o.Kind == btf.KindEnum {
					f.Hi = uint32(int32(f.Lo) >> 31)
				}
				o.Fields = append(o.Fields, f)
			}
		case btf.KindFuncProto:
			o.Refs = []int{ref()}
			for range fields {
				o.Fields, o.Refs = append(o.Fields, canonical.Field{Name: name()}), append(o.Refs, ref())
			}
		}
		types[i] = o
	}
	return slices.Clip(types), data
}
