// SPDX-License-Identifier: Apache-2.0

package btf_test

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	cbtf "github.com/cilium/ebpf/btf"
	"github.com/klauspost/compress/zstd"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
)

// kernels returns the raw BTF of every kernel in testdata, by path.
func kernels(tb testing.TB) map[string][]byte {
	tb.Helper()
	paths, _ := filepath.Glob("../../testdata/vmlinux/*/*/*/*.btf.zst")
	if len(paths) == 0 {
		tb.Fatal("no kernels in testdata/vmlinux")
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(64<<20))
	if err != nil {
		tb.Fatal(err)
	}
	defer dec.Close()
	out := make(map[string][]byte)
	for _, p := range paths {
		z, err := os.ReadFile(p)
		if err != nil {
			tb.Fatal(err)
		}
		if out[p], err = dec.DecodeAll(z, nil); err != nil {
			tb.Fatal(p, err)
		}
	}
	return out
}

// TestAgainstCilium compares every type of real kernels with cilium/ebpf's.
func TestAgainstCilium(t *testing.T) {
	slow.Skip(t)
	raceflag.SkipSerial(t)
	for path, data := range kernels(t) {
		v, err := btf.New(data, nil)
		if err != nil {
			t.Fatal(path, err)
		}
		spec, err := cbtf.LoadSpecFromReader(strings.NewReader(string(data)))
		if err != nil {
			t.Fatal(path, err)
		}
		n := 0
		for id := btf.TypeID(1); int(id) < v.NumTypes(); id++ {
			want, err := spec.TypeByID(cbtf.TypeID(id))
			if err != nil && strconv.IntSize == 32 {
				continue // on such machines cilium/ebpf refuses tags that do not belong to a member
			}
			if err != nil {
				t.Fatal(path, id, err)
			}
			got := v.Type(id)
			// cilium/ebpf does not return tags as names.
			tag := got.Kind() == btf.KindTypeTag || got.Kind() == btf.KindDeclTag
			if string(got.Name()) != want.TypeName() && !tag {
				t.Fatalf("%s: type %d is %q, want %q", path, id, got.Name(), want.TypeName())
			}
			compare(t, v, got, want)
			n++
		}
		if _, err := spec.TypeByID(cbtf.TypeID(v.NumTypes())); err == nil {
			t.Errorf("%s: more than %d types", path, n)
		}
		t.Logf("%s: %d types", path, n)
	}
}

func compare(t *testing.T, v *btf.BTF, got btf.Type, want cbtf.Type) {
	t.Helper()
	members := func(ms []cbtf.Member) {
		if int(got.Vlen()) != len(ms) {
			t.Fatalf("type %d: %d members, want %d", got.ID, got.Vlen(), len(ms))
		}
		for i, m := range ms {
			g := got.Member(uint32(i))
			if string(v.Name(g.NameOff)) != m.Name || g.BitOffset != uint32(m.Offset) || g.BitSize != uint32(m.BitfieldSize) {
				t.Fatalf("type %d: member %d is %+v, want %+v", got.ID, i, g, m)
			}
		}
	}
	kind := btf.KindVoid
	switch w := want.(type) {
	case *cbtf.Struct:
		kind = btf.KindStruct
		members(w.Members)
	case *cbtf.Union:
		kind = btf.KindUnion
		members(w.Members)
	case *cbtf.Array:
		kind = btf.KindArray
		if got.Array().Nelems != w.Nelems {
			t.Fatalf("type %d: %d elements, want %d", got.ID, got.Array().Nelems, w.Nelems)
		}
	case *cbtf.Enum:
		// Some encoders write 8-byte enums as ENUM, with truncated values.
		if kind = btf.KindEnum; w.Size > 4 && got.Kind() == btf.KindEnum64 {
			kind = btf.KindEnum64
		}
		for i, e := range w.Values {
			g := got.Enumerator(uint32(i))
			value := e.Value
			if kind == btf.KindEnum {
				value = uint64(int64(int32(value)))
			}
			if string(v.Name(g.NameOff)) != e.Name || g.Value != value {
				t.Fatalf("type %d: enumerator %d is %+v, want %+v", got.ID, i, g, e)
			}
		}
	case *cbtf.Int:
		kind = btf.KindInt
		if got.Size() != w.Size || (got.IntEncoding()&btf.IntSigned != 0) != (w.Encoding&cbtf.Signed != 0) {
			t.Fatalf("type %d: %d bytes, encoding %d, want %v", got.ID, got.Size(), got.IntEncoding(), w)
		}
	default:
		return
	}
	if got.Kind() != kind {
		t.Fatalf("type %d: %s, want %s", got.ID, got.Kind(), kind)
	}
	if size, err := cbtf.Sizeof(want); err == nil && v.PointerSize() == 8 {
		if g, err := v.SizeOf(got.ID); err != nil || g != uint32(size) {
			t.Fatalf("type %d: size %d, %v, want %d", got.ID, g, err, size)
		}
	}
}

func TestPointerSize(t *testing.T) {
	sizes := make(map[uint32]int)
	for path, data := range kernels(t) {
		v, err := btf.New(data, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := uint32(8)
		if strings.Contains(path, "/armhf/") {
			want = 4
		}
		if v.PointerSize() != want {
			t.Errorf("%s: pointers of %d bytes, want %d", path, v.PointerSize(), want)
		}
		sizes[want]++
	}
	if sizes[4] == 0 || sizes[8] == 0 {
		t.Errorf("kernels by size of pointers: %v", sizes)
	}
}

// sample returns a small blob with one type of each kind that relocations use.
func sample(order binary.ByteOrder) []byte {
	b := btf.NewBuilder(order)
	b.Type("int", btf.KindInt, false, 0, 4) // 1
	b.Word(btf.IntSigned<<24 | 32)
	b.Type("", btf.KindPtr, false, 0, 3)     // 2
	b.Type("s", btf.KindStruct, true, 2, 16) // 3
	b.Word(b.String("a"), 1, 3<<24|5)
	b.Word(b.String("p"), 2, 64)
	b.Type("s___v2", btf.KindStruct, false, 0, 8) // 4
	b.Type("s_t", btf.KindTypedef, false, 0, 6)   // 5
	b.Type("", btf.KindConst, false, 0, 3)        // 6
	b.Type("loop", btf.KindTypedef, false, 0, 7)  // 7 → 7
	b.Type("e", btf.KindEnum64, true, 1, 8)       // 8
	b.Word(b.String("E"), 0xfffffffe, 0xffffffff) // -2
	b.Type("", btf.KindArray, false, 0, 0)        // 9
	b.Word(3, 1, 1<<30)                           // 16 GiB
	b.Type("", btf.KindFuncProto, false, 1, 1)    // 10
	b.Word(b.String("x"), 2)
	return b.Bytes()
}

func TestSample(t *testing.T) {
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		v, err := btf.New(sample(order), nil)
		if err != nil {
			t.Fatal(err)
		}
		if v.Order() != order || v.NumTypes() != 11 {
			t.Errorf("order %s, %d types", v.Order(), v.NumTypes())
		}
		s := v.Type(3)
		if m := s.Member(0); m.BitOffset != 5 || m.BitSize != 3 {
			t.Errorf("bitfield %+v", m)
		}
		if u, ok := v.SkipMods(5); !ok || u.ID != 3 {
			t.Errorf("s_t leads to %d, %v", u.ID, ok)
		}
		if _, ok := v.SkipMods(7); ok {
			t.Error("a typedef of itself has an end")
		}
		if _, err := v.SizeOf(7); !errors.Is(err, btf.ErrDepth) {
			t.Errorf("size of a typedef of itself: %v", err)
		}
		if _, err := v.SizeOf(9); !errors.Is(err, btf.ErrTooBig) {
			t.Errorf("size of 16 GiB: %v", err)
		}
		if _, err := v.SizeOf(10); !errors.Is(err, btf.ErrNoSize) {
			t.Errorf("size of a function: %v", err)
		}
		e := v.Type(8)
		if got := int64(e.Enumerator(0).Value); got != -2 {
			t.Errorf("E = %d", got)
		}
		if got, err := v.Find(t.Context(), btf.NewNames([]string{"nope", "s"}), 2, nil); err != nil || len(got[0]) != 0 || len(got[1]) != 2 || got[1][0] != 3 || got[1][1] != 4 {
			t.Errorf("types named s: %v", got)
		}
		if void := v.Type(4711); void.Kind() != btf.KindVoid {
			t.Errorf("type 4711 is %s", void.Kind())
		}
	}
}

func TestEssential(t *testing.T) {
	for in, want := range map[string]string{
		"task_struct": "task_struct", "task_struct___old": "task_struct", "a___b___c": "a___b",
		"a____b": "a____b", "___b": "___b", "a___": "a___", "": "", "x___y": "x",
	} {
		if got := btf.Essential(in); got != want {
			t.Errorf("Essential(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestDamaged(t *testing.T) {
	le := binary.LittleEndian
	put := func(off int, v uint32) func([]byte) []byte {
		return func(b []byte) []byte { le.PutUint32(b[off:], v); return b }
	}
	const types = 24
	for _, tc := range []struct {
		name string
		edit func([]byte) []byte
		want string
	}{
		{"empty", func([]byte) []byte { return nil }, "header: 0 bytes"},
		{"magic", func(b []byte) []byte { b[0] = 0; return b }, "no BTF magic"},
		{"version", func(b []byte) []byte { b[2] = 2; return b }, "version 2"},
		{"hdr_len small", put(4, 8), "hdr_len 8"},
		{"hdr_len large", put(4, 1<<31), "hdr_len 2147483648"},
		{"types beyond", put(12, 1<<30), "type section"},
		{"strings beyond", put(20, 1<<30), "string section"},
		{"overlap", put(16, 4), "overlap"},
		{"misaligned", func(b []byte) []byte { return put(12, le.Uint32(b[12:])-2)(b) }, "not aligned"},
		{"truncated", func(b []byte) []byte { return b[:len(b)-1] }, "string section"},
		{"strings unterminated", func(b []byte) []byte { b[len(b)-1] = 'x'; return b }, "NUL"},
		{"strings start", func(b []byte) []byte { b[24+le.Uint32(b[12:])] = 'x'; return b }, "empty string"},
		{"kind 0", put(types+4, 0), "kind 0"},
		{"unknown kind", put(types+4, 99<<24), "unknown kind 99"},
		{"absurd vlen", put(types+4, 4<<24|0xffffff), "needs"},
		{"name", put(types, 1<<20), "has a name at byte"},
		{"reference", put(types+16+8, 1000), "type 2 (ptr) refers to type 1000 of 10"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := btf.New(tc.edit(sample(le)), nil)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// layout32 turns a blob into one with a 32-byte header, a layout section
// between types and strings, and a type of a kind that only the layout
// describes.
func layout32(b []byte, kind byte) []byte {
	le := binary.LittleEndian
	n := le.Uint32(b[12:])
	types, strs := b[24:24+n], b[24+n:]
	types = le.AppendUint32(types[:n:n], 0)
	types = le.AppendUint32(types, uint32(kind)<<24|2)
	types = append(types, make([]byte, 4+8+2*4)...) // info 8, elements of 4
	layout := make([]byte, 4*(int(kind)+1))
	layout[4*int(kind)], layout[4*int(kind)+1] = 8, 4
	out := append([]byte{0x9f, 0xeb, 1, 0}, make([]byte, 28)...)
	for i, v := range []int{32, 0, len(types), len(types) + len(layout), len(strs), len(types), len(layout)} {
		le.PutUint32(out[4+4*i:], uint32(v))
	}
	return append(append(append(out, types...), layout...), strs...)
}

func TestLayoutSection(t *testing.T) {
	b := layout32(sample(binary.LittleEndian), 100)
	v, err := btf.New(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	if u := v.Type(11); v.NumTypes() != 12 || u.Kind() != 100 {
		t.Errorf("%d types, the last of %s", v.NumTypes(), u.Kind())
	}
	binary.LittleEndian.PutUint32(b[28:], 0) // no layout section
	if _, err := btf.New(b, nil); err == nil || !strings.Contains(err.Error(), "unknown kind 100") {
		t.Errorf("without a layout section: %v", err)
	}
}

func TestSplit(t *testing.T) {
	base, err := btf.New(sample(binary.LittleEndian), nil)
	if err != nil {
		t.Fatal(err)
	}
	// A typedef of the base's struct, named by a string of the base, and a
	// struct with a name of its own.
	b := btf.NewBuilder(binary.LittleEndian)
	b.Type("", btf.KindTypedef, false, 0, 3)
	b.Type("", btf.KindStruct, false, 0, 1)
	raw := b.Bytes()
	le := binary.LittleEndian
	baseS, strEnd := base.Type(3), le.Uint32(sample(le)[20:])
	le.PutUint32(raw[24:], baseS.NameOff)
	le.PutUint32(raw[36:], strEnd)
	raw = append(raw[:48], "mod\x00"...)
	le.PutUint32(raw[20:], 4)

	v, err := btf.New(raw, base)
	if err != nil {
		t.Fatal(err)
	}
	td, st := v.Type(11), v.Type(12)
	if string(td.Name()) != "s" || string(st.Name()) != "mod" || v.NumTypes() != 13 || v.FirstID() != 11 {
		t.Errorf("types %q %q, %d of them", td.Name(), st.Name(), v.NumTypes())
	}
	if u, ok := v.SkipMods(11); !ok || u.ID != 3 || u.BTF() != base {
		t.Errorf("typedef leads to %d", u.ID)
	}
	if _, err := btf.New(raw, nil); err == nil {
		t.Error("split BTF loads without its base")
	}
	big, _ := btf.New(sample(binary.BigEndian), nil)
	if _, err := btf.New(raw, big); err == nil || !strings.Contains(err.Error(), "byte order") {
		t.Errorf("base of the other byte order: %v", err)
	}
}

// FuzzLoad loads any data and then calls all accessors.
func FuzzLoad(f *testing.F) {
	f.Add(sample(binary.LittleEndian))
	f.Add(sample(binary.BigEndian))
	f.Add(layout32(sample(binary.LittleEndian), 40))
	names := btf.NewNames([]string{"s", "e"})
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := btf.New(data, nil)
		if err != nil {
			if v != nil {
				t.Error("result and error")
			}
			return
		}
		walk(v)
		if _, err := v.Find(t.Context(), names, 2, nil); err != nil {
			t.Error(err)
		}
		if m, err := btf.New(data, v); err == nil {
			walk(m)
		}
	})
}

func walk(v *btf.BTF) {
	for id := range btf.TypeID(v.NumTypes()) {
		u := v.Type(id)
		u.Name()
		v.SkipMods(id)
		v.SizeOf(id)
		for i := range u.Vlen() {
			switch k := u.Kind(); {
			case k.IsComposite():
				m := u.Member(i)
				v.Name(m.NameOff)
				v.Type(m.Type)
			case k.IsAnyEnum():
				v.Name(u.Enumerator(i).NameOff)
			case k == btf.KindFuncProto:
				v.Type(u.Param(i).Type)
			}
		}
		switch u.Kind() {
		case btf.KindArray:
			v.Type(u.Array().Elem)
		case btf.KindVar, btf.KindFunc:
		}
	}
}
