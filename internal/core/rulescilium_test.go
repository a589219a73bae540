// SPDX-License-Identifier: Apache-2.0

package core

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/cilium/ebpf/btf"

	"github.com/btfgen/btfgen/pkg/relo"
)

// TestRulesCilium compares what the rules say of cilium/ebpf with its own code.
// It refuses to read some of the objects, and knows no limits of ours.
func TestRulesCilium(t *testing.T) {
	compared, refused := 0, 0
	for _, r := range readRules(t) {
		t.Run(r.name, func(t *testing.T) {
			object, err := ruleObject(r.object.Order(), r.local, r.asks, true)
			if err != nil {
				t.Fatal(err)
			}
			_, ext, err := btf.LoadSpecAndExtInfosFromReader(bytes.NewReader(object))
			if err != nil {
				t.Logf("not compared: %v", err)
				refused++
				return
			}
			kernel, err := btf.LoadSpecFromReader(bytes.NewReader(r.vmlinux))
			if err != nil {
				t.Logf("not compared: %v", err)
				refused++
				return
			}
			targets := []*btf.Spec{kernel}
			for _, raw := range r.modules {
				split, err := btf.LoadSplitSpecFromReader(bytes.NewReader(raw), kernel)
				if err != nil {
					t.Fatal(err)
				}
				targets = append(targets, split)
			}
			var tb Table
			if err := new(Filler).Fill(t.Context(), &tb, NewSet(r.object), r.kernel, nil); err != nil {
				t.Fatal(err)
			}
			m := &tb.set.objects[0]
			_, _, offsets := ext.Section(ruleSection)
			byOffset := make(map[uint32]*btf.CORERelocation)
			for _, o := range offsets {
				byOffset[uint32(o.Offset)*insnSize] = o.Relo
			}
			programs, err := m.LinkedPrograms()
			if err != nil || len(programs) != 1 {
				t.Fatalf("%d programs: %v", len(programs), err)
			}
			cilium := tb.Cilium(t.Context())
			for _, g := range m.groupsOf(programs[0].Records) {
				about := m.specs[g.specs[0]].rootName()
				var relos []*btf.CORERelocation
				var specs []int32
				for _, rec := range programs[0].Records {
					if sp := m.records[rec].spec; m.rootOf[sp] == g.root && m.question[sp] >= 0 {
						relos, specs = append(relos, byOffset[m.records[rec].Offset]), append(specs, sp)
					}
				}
				want, err := btf.CORERelocate(relos, targets, m.order, func(btf.Type) (btf.TypeID, error) { return 1, nil })
				c := cilium.calculateFixups(m, &g)
				compared += len(relos)
				if err != nil || c.err != nil {
					if (err == nil) != (c.err == nil) && !errors.Is(c.err, errNesting) {
						t.Errorf("%s: %v, cilium/ebpf: %v", about, c.err, err)
					}
					continue
				}
				for i, sp := range specs {
					if slices.Contains(g.specs, sp) {
						f := cilium.fixup(m, sp, c.place)
						if f.id {
							f.target = uint64(tb.candidates(m.question[sp])[f.target-1].id)
						}
						got := m.specs[sp].kind.String() + "=" + f.String()
						if text := want[i].String(); f.poison && text != m.specs[sp].kind.String()+"=poison" || !f.poison && text != fixupText(m.specs[sp].kind, &f) {
							t.Errorf("%s: %s, cilium/ebpf: %s", m.specs[sp], got, text)
						}
					}
				}
			}
		})
	}
	t.Logf("%d relocations compared; %d scenarios cannot be", compared, refused)
	if compared == 0 {
		t.Error("nothing was compared")
	}
}

// fixupText is how cilium/ebpf prints a fixup that does not poison.
func fixupText(k relo.Kind, f *fixup) string {
	return fmt.Sprintf("%s=%d->%d", k, f.local, f.target)
}
