// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/btfenc"
	"github.com/btfgen/btfgen/internal/raceflag"
)

// splitBTF is split BTF with structs of its own by these names, whose members are the first type of a kernel and each other.
func splitBTF(order interface {
	binary.ByteOrder
	binary.AppendByteOrder
}, kernel []byte, n int, name func(i int) string) []byte {
	types := uint32(0)
	sec, _ := parseSections(kernel, uint64(len(kernel)))
	b := kernel[sec.types.start:sec.types.end]
	for len(b) > 0 {
		k, vlen := btfenc.Kind(order.Uint32(b[4:])>>24&0x7f), int(order.Uint32(b[4:])&0xffff)
		b = b[12+4*len(k.Shape().Extra)+4*len(k.Shape().Elem)*vlen:]
		types++
	}
	base := uint32(sec.strings.end - sec.strings.start)
	var own, strs []byte
	for i := range n {
		at := base + uint32(len(strs))
		strs = append(strs, name(i)...)
		strs = append(strs, 0)
		for _, v := range []uint32{at, uint32(btfenc.KindStruct)<<24 | 2, 16, 1, 1, 0, at, types + 1 + uint32(i*5%n), 64} {
			own = append(own, order.AppendUint32(nil, v)...)
		}
	}
	out := slices.Concat(kernel[:4], make([]byte, 20), own, strs)
	for i, v := range []uint32{btfenc.HeaderLen, 0, uint32(len(own)), uint32(len(own)), uint32(len(strs))} {
		order.PutUint32(out[4+4*i:], v)
	}
	return out
}

func withModules(t *testing.T, order interface {
	binary.ByteOrder
	binary.AppendByteOrder
}) input {
	k := in("6.1.0-1-amd64", build(t, order, 1))
	for n := range 9 {
		m := splitBTF(order, k.btf, 20+n, func(i int) string { return fmt.Sprintf("ext%d_%d", (20+n)%7, i) })
		k.modules = append(k.modules, Module{fmt.Sprintf("m%d", n), m})
		bad := bytes.Clone(m)
		bad[n*len(bad)/9] ^= 0x41
		k.modules = append(k.modules, Module{fmt.Sprintf("m%d_bad", n), bad})
	}
	return k
}

// TestSplit packs modules with split BTF, some of them damaged.
func TestSplit(t *testing.T) {
	for _, order := range []interface {
		binary.ByteOrder
		binary.AppendByteOrder
	}{binary.LittleEndian, binary.BigEndian} {
		a := withModules(t, order)
		b := in("6.1.0-2-amd64", build(t, order, 2))
		data := written(t, nil, a, b)
		f := open(t, data)
		same(t, f, a, b)
		raw, packed := 0, f.Entries()[0].ModulesPacked
		for _, m := range a.modules {
			raw += len(m.BTF)
		}
		if packed > int64(raw)/8 {
			t.Errorf("%s: modules of %d bytes take %d", order, raw, packed)
		}
		second(t, data, a, b)
	}
}

// TestDamagedModules reads chunks of modules in which every third byte is changed, or is where they end.
func TestDamagedModules(t *testing.T) {
	raceflag.SkipSerial(t)
	k := withModules(t, binary.LittleEndian)
	f := open(t, written(t, nil, k))
	e := &f.entries[0]
	offset, n := e.chunk()
	good, err := f.chunk(ctx, offset+n, e.ModulesPacked, e.modules, nil)
	if err != nil {
		t.Fatal(err)
	}
	st := func() (*state, error) { return f.states.get(ctx, 0) }
	for at := 0; at < len(good); at += 3 {
		bad := bytes.Clone(good)
		bad[at] ^= 0x15
		all, err := readModules(ctx, st, bad, e.Modules, func(string) bool { return true })
		if err == nil && len(all) != len(k.modules) {
			t.Errorf("byte %d changed: %d modules and no error", at, len(all))
		}
		if _, err := readModules(ctx, st, good[:at], e.Modules, func(string) bool { return true }); err == nil {
			t.Errorf("cut to %d of %d bytes: no error", at, len(good))
		}
	}
}
