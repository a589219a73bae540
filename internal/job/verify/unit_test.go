// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/relo"
)

// unitTest is an object with the programs that cilium/ebpf links.
type unitTest struct {
	o        testinput.Object
	programs []unitProgram
}

type unitProgram struct {
	section, name string
	relos         []*btf.CORERelocation
	records       []int
}

// TestUnits compares package core's model of cilium/ebpf with cilium/ebpf's own code: which records it relocates together,
// and with which results.
func TestUnits(t *testing.T) {
	slow.Skip(t)
	raceflag.SkipSerial(t)
	var objects []*unitTest
	for _, o := range testinput.Objects(t) {
		spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(o.Data))
		if err != nil {
			continue
		}
		u := &unitTest{o: o}
		obj := o.Object
		at := make(map[place]int)
		for i, r := range obj.Records() {
			at[place{r.Program, r.Insn}] = i
		}
		units, err := obj.LinkedPrograms()
		if err != nil {
			t.Fatal(err)
		}
		ours := make(map[string]core.LinkedProgram)
		for _, one := range units {
			ours[one.Name] = one
		}
		if len(ours) != len(spec.Programs) {
			t.Errorf("%s: %d units, cilium/ebpf has %d programs", o.Name(), len(ours), len(spec.Programs))
		}
		for _, name := range slices.Sorted(maps.Keys(spec.Programs)) {
			p := spec.Programs[name]
			relos, records := recordsOf(p, at)
			u.programs = append(u.programs, unitProgram{p.SectionName, name, relos, records})
			mine := slices.Sorted(slices.Values(ours[name].Records))
			if theirs := slices.Sorted(slices.Values(records)); ours[name].Section != p.SectionName || !slices.Equal(mine, theirs) {
				t.Errorf("%s: %s in %s has records %v, cilium/ebpf's in %s has %v", o.Name(), name, ours[name].Section, mine, p.SectionName, theirs)
			}
		}
		objects = append(objects, u)
	}
	fixups, failed := 0, 0
	testinput.Each(t, testinput.Varied(t), func(k *corpus.Kernel) {
		target, err := testinput.NewKernel(k.Name, k.BTF, k.Modules...)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := readCiliumTarget(t.Context(), target, k.BTF, k.Modules, nil)
		if err != nil {
			t.Fatal(err)
		}
		var tb core.Table
		for _, u := range objects {
			if !u.o.IsFor(target) {
				continue
			}
			obj := u.o.Object
			if err := new(core.Filler).Fill(t.Context(), &tb, core.NewSet(obj), target, nil); err != nil {
				t.Fatal(err)
			}
			cilium := tb.Cilium(t.Context())
			for _, p := range u.programs {
				d, err := cilium.Linked(0, p.section, p.name)
				if err != nil || d == nil {
					t.Fatalf("%s: %s: no unit: %v", u.o.Name(), p.name, err)
				}
				about := fmt.Sprintf("%s: %s: %s", k.Name, u.o.Name(), p.name)
				got, err := btf.CORERelocate(p.relos, theirs, u.o.Order(), func(btf.Type) (btf.TypeID, error) { return 1, nil })
				if err != nil {
					failed++
					if d.Err == nil || isAmbiguous(err) != (core.ReasonOf("", d.Err).Cause == relo.CauseAmbiguous) {
						t.Errorf("%s: %v, cilium/ebpf: %v", about, d.Err, err)
					}
					continue
				}
				if d.Err != nil {
					t.Errorf("%s: %v, cilium/ebpf loads it", about, d.Err)
					continue
				}
				for i := range got {
					f, ok := d.Fixup(p.records[i])
					if !ok {
						continue
					}
					what := obj.Relocation(&obj.Records()[p.records[i]])
					fixups++
					want := got[i].String()
					local, target, isValue := values(want)
					if f.Poison == isValue || isValue && (f.Local != local || !f.ID && f.Target != target) {
						t.Errorf("%s: %s: %+v, cilium/ebpf: %s", about, what, f, want)
					}
				}
			}
		}
	})
	t.Logf("%d objects: %d fixups compared; %d programs that cilium/ebpf gives up on", len(objects), fixups, failed)
	if fixups == 0 {
		t.Error("nothing was compared")
	}
}

// place is the position of a record's instruction.
type place struct {
	function string
	insn     int
}

// recordsOf returns the relocations of a program and of the functions that cilium/ebpf links into it.
func recordsOf(p *ebpf.ProgramSpec, at map[place]int) (relos []*btf.CORERelocation, records []int) {
	function, start := "", asm.RawInstructionOffset(0)
	for it := p.Instructions.Iterate(); it.Next(); {
		if sym := it.Ins.Symbol(); sym != "" {
			function, start = sym, it.Offset
		}
		relo := btf.CORERelocationMetadata(it.Ins)
		if relo == nil {
			continue
		}
		if i, ok := at[place{function, int(it.Offset - start)}]; ok {
			relos, records = append(relos, relo), append(records, i)
		}
	}
	return relos, records
}
