// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/kernel"
)

func key(s string) kernel.Key {
	k, err := kernel.ParseKey(s)
	if err != nil {
		panic(err)
	}
	return k
}

func TestPairs(t *testing.T) {
	raceflag.SkipSerial(t)
	all := []Minimized{
		{Key: key("debian/12/x86_64/6.1.0-47-amd64"), Name: "a"},
		{Key: key("ubuntu/20.04/arm64/5.4.0-42-generic"), Name: "b"},
		{Key: key("ubuntu/18.04/arm64/5.4.0-42-generic"), Name: "c"},
		{Name: "some/where/mine.btf"},
		{Key: kernel.Key{Release: "6.6.6"}, Name: "e"},
	}
	p := newPairs(all)
	for _, tt := range []struct {
		key  kernel.Key
		name string
		want string
	}{
		{key("debian/12/amd64/6.1.0-47-amd64"), "", "a"}, // an alias
		{key("ubuntu/18.04/aarch64/5.4.0-42-generic"), "", "c"},
		{key("ubuntu/22.04/arm64/5.4.0-42-generic"), "", ""}, // another distribution's kernel of that release
		{kernel.Key{Release: "5.4.0-42-generic"}, "", ""},    // ambiguous
		{kernel.Key{Release: "6.1.0-47-amd64"}, "", "a"},
		{kernel.Key{}, "elsewhere/mine.btf", "some/where/mine.btf"},
		{kernel.Key{}, "yours.btf", ""},
	} {
		got := ""
		if m := p.find(tt.key, tt.name, false); m != nil {
			got = m.Name
		}
		if got != tt.want {
			t.Errorf("%s %s: %q, want %q", tt.key, tt.name, got, tt.want)
		}
	}
	var unused []string
	for _, m := range p.unused() {
		unused = append(unused, m.Name)
	}
	if d := cmp.Diff([]string{"b", "e"}, unused); d != "" {
		t.Error(d)
	}
	lone := newPairs(all[3:4])
	if lone.find(kernel.Key{}, "yours.btf", true) == nil {
		t.Error("a lone BTF is not paired with a lone kernel")
	}
	if newPairs(all[:1]).find(key("debian/12/x86_64/6.1.0-48-amd64"), "", true) != nil {
		t.Error("a lone BTF is paired with a kernel of another release")
	}
}

// TestGroups checks that cilium/ebpf's relocations are matched with the right records: local type and kind are equal, a static
// function's records are in every program that calls it, and each group has one local type.
func TestGroups(t *testing.T) {
	raceflag.SkipSerial(t)
	k := testinput.Kernels(t, "x86_64/6.1.0-47-amd64")[0]
	target, err := testinput.NewKernel(k.Name, k.BTF)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"subprogs.bpfel.o", "execsnoop.bpfel.o", "kinds.bpfel.o"} {
		o := testinput.Named(t, name)
		log, err := core.NewSet(o.Object).Run(t.Context(), target)
		if err != nil {
			t.Fatal(err)
		}
		c := readCilium(t.Context(), o.Object, o.Data)
		if c.note != "" {
			t.Fatal(c.note)
		}
		programs := make(map[string]bool) // by name: it calls a static function
		for _, g := range c.groups {
			first := &log.Entries[g.records[0]]
			for i, r := range g.records {
				e := &log.Entries[r]
				got, id := g.relos[i].String(), fmt.Sprintf("local_id=%d)", e.Local.TypeID)
				if !strings.Contains(got, "("+e.Kind.String()+", ") || !strings.HasSuffix(got, id) {
					t.Errorf("%s: record %d is %s of type %d, cilium/ebpf has %s", name, r, e.Kind, e.Local.TypeID, got)
				}
				if e.Local.TypeID != first.Local.TypeID {
					t.Errorf("%s: two local types in one group", name)
				}
				if e.Section == ".text" {
					programs[g.program] = true
				}
			}
		}
		if name == "subprogs.bpfel.o" && len(programs) < 1 {
			t.Error("no program has records of static functions")
		}
	}
}

// TestFallback reads every record of an object that cilium/ebpf does not load.
func TestFallback(t *testing.T) {
	raceflag.SkipSerial(t)
	o := testinput.Named(t, "guards.bpfel.o")
	c := readCilium(t.Context(), o.Object, o.Data)
	if c.note == "" {
		t.Skip("skipped: cilium/ebpf loads it now")
	}
	if c.missed > 0 || len(c.groups) == 0 {
		t.Errorf("%d groups, %d records missed of %d", len(c.groups), c.missed, len(o.Records()))
	}
}
