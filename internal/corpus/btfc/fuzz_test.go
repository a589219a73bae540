// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
)

// encode encodes the BTF of a kernel.
func encode(parent *state, btf []byte) (*state, payloads, error) {
	p := newParsed(newKnown(parent))
	p.btf(Module{BTF: btf})
	return encodeParsed(parent, p, btf)
}

// encodeParsed encodes what was parsed of one blob.
func encodeParsed(parent *state, p *parsed, blob []byte) (st *state, of payloads, err error) {
	of, err = p.encode(parent, match(parent, p, false))
	if err == nil {
		st, err = check(parent, of, [][]byte{blob})
	}
	return st, of, err
}

// joined returns the front and the back of a chunk.
func (p payloads) joined() (front, back []byte) {
	return bytes.Join(p.front, nil), bytes.Join(p.back, nil)
}

// FuzzDecode decodes damaged payloads, with and without a parent: there is an error, or BTF of the right size.
func FuzzDecode(f *testing.F) {
	root := newState()
	add := func(parent *state, btf []byte) (*state, []byte) {
		st, parts, err := encode(parent, btf)
		if err != nil {
			f.Fatal(err)
		}
		front, back := parts.joined()
		f.Add(front, back, parent != root)
		return st, front
	}
	size := int64(len(build(f, binary.LittleEndian, 0)))
	q := NewQuery(map[string]btf.Reach{"s1": btf.ReachAll, "s7": btf.ReachValue})
	parent, front := add(root, build(f, binary.LittleEndian, 0))
	parentFront, err := decode(root, front, nil, size, q)
	if err != nil {
		f.Fatal(err)
	}
	for n := range 4 {
		add(parent, build(f, binary.LittleEndian, 5*n))
	}
	var b builder
	f.Fuzz(func(t *testing.T, front, back []byte, next bool) {
		on, onFront := root, root
		if next {
			on, onFront = parent, parentFront
		}
		if st, err := decode(onFront, front, nil, size, q); err == nil && len(st.units) > 0 {
			if p, err := new(builder).partOf(st, nil, nil); err == nil {
				if _, err := btf.New(p.BTF, nil); err != nil {
					t.Errorf("a part is not BTF: %v", err)
				}
			}
		}
		st, err := decode(on, front, back, size, nil)
		if err != nil {
			return
		}
		out, err := b.build(st, 0, nil)
		if err == nil && int64(len(out)) != size {
			t.Errorf("%d bytes, want %d", len(out), size)
		}
	})
}

// FuzzIndex reads damaged indexes. Without an error the entries can be written and read again.
func FuzzIndex(f *testing.F) {
	a := in("6.1.0-1-amd64", build(f, binary.LittleEndian, 1))
	a.modules = []Module{{"ext4", []byte("one")}}
	b := in("6.1.0-2-amd64", build(f, binary.LittleEndian, 2))
	a.extras, b.extras = extras(1), extras(2)
	file := open(f, written(f, nil, a, b, in("6.2", []byte("text"))))
	file.entries[1].Made = Made{By: "pahole v1.24", Of: file.entries[0].Sum}
	file.entries[0].Shape = Shape{Types: 3, BigEndian: true, Pointer: 4}
	f.Add(indexOf(f, file.entries, nil), file.end)
	f.Add(indexOf(f, file.entries, somePackages(file)), file.end)
	f.Fuzz(func(t *testing.T, data []byte, end int64) {
		entries, packages, err := parseIndex(data, end)
		if err != nil {
			return
		}
		again, noted, err := parseIndex(indexOf(t, entries, packages), end)
		if err != nil || len(again) != len(entries) || !slices.Equal(noted, packages) {
			t.Errorf("written again: %v", err)
		}
	})
}

// TestShape refuses shapes that no BTF of 100 bytes has.
func TestShape(t *testing.T) {
	for s, want := range map[Shape]bool{
		{}: true, {Types: 8, Pointer: 8}: true, {Pointer: 4, BigEndian: true}: true,
		{Types: 9, Pointer: 8}: false, {Types: -1, Pointer: 8}: false, {Types: 1}: false, {BigEndian: true}: false, {Types: 1, Pointer: 5}: false,
	} {
		if err := s.check(100); (err == nil) != want {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

// changeEach changes each byte of a file, and calls right for each kernel.
func changeEach(t *testing.T, data []byte, all []input, right func(f *File, i int) bool) {
	t.Helper()
	for at := range data {
		bad := bytes.Clone(data)
		bad[at] ^= 0x11
		f, err := Open(bytes.NewReader(bad), int64(len(bad)))
		if err != nil {
			continue
		}
		for i, k := range all {
			if !right(f, i) {
				t.Fatalf("byte %d changed: %s differs without an error", at, k.key)
			}
		}
	}
}

// TestDamaged changes each byte of a file: the BTF is right, or there is an error.
func TestDamaged(t *testing.T) {
	raceflag.SkipSerial(t)
	all := []input{in("6.1.0-1-amd64", build(t, binary.LittleEndian, 1)), in("6.1.0-2-amd64", build(t, binary.LittleEndian, 2)), in("6.2", []byte("text"))}
	data := written(t, nil, all...)
	changeEach(t, data, all, func(f *File, i int) bool {
		got, err := f.BTF(ctx, i, nil)
		return err != nil || bytes.Equal(got, all[i].btf)
	})
	for n := range data {
		if _, err := Open(bytes.NewReader(data[:n]), int64(n)); err == nil {
			t.Errorf("cut to %d of %d bytes: no error", n, len(data))
		}
	}
}

// TestDamagedLarge decodes damaged payloads of a large kernel.
func TestDamagedLarge(t *testing.T) {
	slow.Skip(t)
	raceflag.SkipSerial(t)
	var b strings.Builder
	for i := range 6000 {
		fmt.Fprintf(&b, "struct s%d %d: next *s%d 0, member%d u32 8, data%d u8[%d] 12\n", i, 64+i%9, (i*7+1)%6000, i%999, i%40, 4+i%7)
	}
	btf := testbtf.Types(t, binary.LittleEndian, b.String())
	_, parts, err := encode(newState(), btf)
	if err != nil {
		t.Fatal(err)
	}
	good, back := parts.joined()
	var build builder
	for n := range 200 {
		bad := bytes.Clone(good)
		if n > 0 {
			bad[n*len(bad)/200] ^= 0x11
		}
		st, err := decode(newState(), bad, back, int64(len(btf)), nil)
		if err != nil {
			continue
		}
		out, err := build.build(st, 0, nil)
		if n == 0 && (err != nil || !bytes.Equal(out, btf)) {
			t.Fatalf("not damaged: error %v", err)
		}
	}
}
