package engine

import (
	"encoding/binary"
	"testing"

	"github.com/btfgen/btfgen/internal/rawbtf"
)

// TestSwapped has two candidates of which each question finds the same
// offsets on both sides, but not at the same candidate: a loader that narrows
// by a reads b at 4 on the one and at 8 on the other.
func TestSwapped(t *testing.T) {
	// member is a member and its offset in bytes; a struct foo each.
	type member struct {
		name string
		off  uint32
	}
	kernel := func(foos ...[]member) *rawbtf.BTF {
		b := rawbtf.NewBuilder(binary.LittleEndian)
		b.Type("int", rawbtf.KindInt, false, 0, 4)
		b.Word(rawbtf.IntSigned<<24 | 32)
		for _, ms := range foos {
			b.Type("foo", rawbtf.KindStruct, false, len(ms), 16)
			for _, m := range ms {
				b.Word(b.String(m.name), 1, m.off*8)
			}
		}
		v, err := rawbtf.New(b.Bytes(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	local := kernel([]member{{"a", 0}, {"b", 4}})
	o := &Object{name: "o", btf: local, order: binary.LittleEndian}
	for _, access := range []string{"0:0", "0:1"} {
		s := parseSpec(local, KindByteOffset, 2, access)
		if s.err != nil {
			t.Fatal(s.err)
		}
		o.specs = append(o.specs, s)
	}
	set := NewSet(o.order, o)
	fill := func(foos ...[]member) *Table {
		tb := new(Table)
		tb.Fill(set, &Kernel{name: "k", views: []*view{{BTF: *kernel(foos...)}}}, nil)
		return tb
	}
	full := fill([]member{{"a", 0}, {"b", 4}}, []member{{"b", 8}})
	if d := Compare(full, fill([]member{{"a", 0}, {"b", 4}}, []member{{"b", 8}})); d != nil {
		t.Errorf("the kernel is not the same as itself: %v", d)
	}
	if Compare(full, fill([]member{{"a", 0}, {"b", 8}}, []member{{"b", 4}})) == nil {
		t.Error("b at 4 and b at 8 have changed places, and the proof did not see it")
	}
}
