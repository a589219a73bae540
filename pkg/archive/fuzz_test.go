package archive

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/canon"
	"github.com/btfgen/btfgen/internal/rawbtf"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// FuzzPayload opens a payload as it comes out of the frame and takes every BTF
// out.
func FuzzPayload(f *testing.F) {
	for _, kernels := range [][]Kernel{nil, realKernels(f)[:1], realKernels(f)} {
		payload, err := unpack(mustWrite(f, kernels))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(payload)
	}
	for _, p := range hostile(f) {
		f.Add(p.payload)
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		a, err := openPayload(payload)
		if (a != nil) != (err == nil) {
			t.Fatalf("archive %v, error %v", a, err)
		}
		if err != nil {
			return
		}
		for _, k := range a.Keys() {
			b, err := a.BTF(k)
			if err != nil {
				continue
			}
			if _, err := rawbtf.New(b, nil); err != nil {
				t.Fatalf("%s: %v", k, err)
			}
			// In canonical form it can be written and read again.
			types, err := a.types(a.variantsOf(int(a.layoutOf[a.index[k.Canonical()]])))
			if err != nil || len(types) == 0 {
				continue
			}
			again := rewritten(t, []Kernel{{k, b}})
			if c, err := again.BTF(k); err == nil {
				d := rewritten(t, []Kernel{{k, c}})
				if e, err := d.BTF(k); err != nil || !bytes.Equal(e, c) {
					t.Fatalf("%s: changed when written again: %v\n%x\n%x", k, err, c, e)
				}
			}
		}
	})
}

// FuzzOpen opens files, whose checksum keeps nearly all changes out.
func FuzzOpen(f *testing.F) {
	f.Add(mustWrite(f, realKernels(f)))
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		if a, err := Open(data); (a != nil) != (err == nil) {
			t.Fatalf("archive %v, error %v", a, err)
		}
	})
}

// FuzzWrite makes BTFs of random types in canonical order and wants each back
// byte for byte.
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
		var kernels []Kernel
		for i := 0; len(data) > 0 && i < 8; i++ {
			var types []*canon.Type
			types, data = randomTypes(data)
			order := binary.ByteOrder(binary.LittleEndian)
			if i%3 == 2 {
				order = binary.BigEndian
			}
			k := kernel.Key{ID: "a", Arch: "x86_64", Release: fmt.Sprint(i)}
			kernels = append(kernels, Kernel{k, canon.Write(canon.Merge(types), order)})
		}
		a := rewritten(t, kernels)
		for _, k := range kernels {
			if b, err := a.BTF(k.Key); err != nil || !bytes.Equal(b, k.BTF) {
				t.Fatalf("%s: %v\n%x\n%x", k.Key, err, k.BTF, b)
			}
		}
	})
}

// randomTypes makes types of data, as pkg/minimize might, and of shapes that it
// never would: cycles of anonymous types, several of one name, copies.
func randomTypes(data []byte) ([]*canon.Type, []byte) {
	next := func() int {
		if len(data) == 0 {
			return 0
		}
		b := data[0]
		data = data[1:]
		return int(b)
	}
	kinds := []rawbtf.Kind{
		rawbtf.KindInt, rawbtf.KindPtr, rawbtf.KindArray, rawbtf.KindStruct, rawbtf.KindUnion, rawbtf.KindEnum,
		rawbtf.KindFwd, rawbtf.KindTypedef, rawbtf.KindFuncProto, rawbtf.KindFloat, rawbtf.KindEnum64,
	}
	types := make([]*canon.Type, 1+next()%20)
	ref := func() int { return next()%(len(types)+1) - 1 }
	word := func() uint32 { return uint32(next()*next()*next()) << (next() % 9) }
	signed := func() uint32 { return word() * uint32(1-2*(next()&1)) }
	for i := range types {
		o := &canon.Type{Kind: kinds[next()%len(kinds)], Flag: next()%4 == 0, Copies: next() % 3}
		if n := next() % 6; n > 0 && o.Kind != rawbtf.KindPtr && o.Kind != rawbtf.KindArray && o.Kind != rawbtf.KindFuncProto {
			o.Name = string(rune('a' + n))
		} else {
			o.Copies = 0
		}
		fields := next() % 5
		name := func() string { return []string{"", "x", "y", "zz", "longer_name"}[next()%5] }
		switch o.Kind {
		case rawbtf.KindInt:
			o.Size, o.Fields = uint32(next()), []canon.Field{{Lo: word()}}
		case rawbtf.KindFloat:
			o.Size = uint32(next())
		case rawbtf.KindPtr, rawbtf.KindTypedef:
			o.Refs = []int{ref()}
		case rawbtf.KindArray:
			o.Fields, o.Refs = []canon.Field{{Lo: word()}}, []int{ref(), ref()}
		case rawbtf.KindStruct, rawbtf.KindUnion:
			o.Size = word()
			for range fields {
				f := canon.Field{Name: name(), Lo: word()}
				if !o.Flag {
					f.Lo &= 0xffffff
				}
				o.Fields, o.Refs = append(o.Fields, f), append(o.Refs, ref())
			}
		case rawbtf.KindEnum, rawbtf.KindEnum64:
			o.Size = uint32(next())
			for range fields {
				f := canon.Field{Name: name(), Lo: signed()}
				if f.Hi = signed(); o.Kind == rawbtf.KindEnum {
					f.Hi = uint32(int32(f.Lo) >> 31)
				}
				o.Fields = append(o.Fields, f)
			}
		case rawbtf.KindFuncProto:
			o.Refs = []int{ref()}
			for range fields {
				o.Fields, o.Refs = append(o.Fields, canon.Field{Name: name()}), append(o.Refs, ref())
			}
		}
		types[i] = o
	}
	return slices.Clip(types), data
}
