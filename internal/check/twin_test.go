// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/interp"
)

// TestTwins has two objects with a function of the same code, in which functions and externs have other numbers. The second is
// judged as if it were alone, without another exploration.
func TestTwins(t *testing.T) {
	code, externs := facts(3)
	first := &bpfobj.Object{Externs: externs, Funcs: []bpfobj.Function{{Name: "a", Insns: code}}, Programs: []bpfobj.Program{{Funcs: []int{0}}}}
	moved := slices.Clone(code)
	for i := range moved {
		if moved[i].Ref.Kind() == bpfobj.RefExtern {
			moved[i].Ref = bpfobj.RefTo(bpfobj.RefExtern, moved[i].Ref.N()+1)
		}
	}
	second := &bpfobj.Object{
		Externs:  append([]bpfobj.Extern{{Name: "A", Kind: bpfobj.ExternKconfig}}, externs...),
		Funcs:    []bpfobj.Function{{Name: "other", Insns: code[len(code)-1:]}, {Name: "b", Insns: moved}},
		Programs: []bpfobj.Program{{Fn: 1, Funcs: []int{1}}},
	}
	judge := func(objects ...*bpfobj.Object) (findings [][]Finding, units int) {
		var cfg Config
		for _, o := range objects {
			cfg.Objects = append(cfg.Objects, newObject("o", o, noRecords(t)))
		}
		r := newRun(cfg)
		k := &inventory{want: r.want, helpers: map[int64]bool{presentHelper: true}, features: interp.Ranges}
		for i, o := range cfg.Objects {
			findings = append(findings, r.found.read(r.code(t.Context(), &evaluation{pairing: r.pairing(i, k, decisions{}, new(target)), pr: &o.Programs[0]})))
		}
		for _, l := range r.results.units.known {
			units += len(l)
		}
		return findings, units
	}
	alone, _ := judge(second)
	both, units := judge(first, second)
	if len(alone[0]) != 3 || fmt.Sprint(both[1]) != fmt.Sprint(alone[0]) {
		t.Errorf("%v, alone %v", both[1], alone[0])
	}
	if units != 1 {
		t.Errorf("%d units are explored", units)
	}
	second.Externs[1].Name = "LINUX_9"
	if both, units = judge(first, second); units != 2 || len(both[1]) != 3 {
		t.Errorf("another extern: %d units, %v", units, both[1])
	}
}
