// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/testing/testinput"
)

// TestStructOpsMembers checks which members are set, by which programs, and the verdict on a missing member.
func TestStructOpsMembers(t *testing.T) {
	o, err := Parse(t.Context(), "ops", testinput.Named(t, "ops.bpfel.o").Data)
	if err != nil {
		t.Fatal(err)
	}
	var control bpfobj.StructOpsMap
	for _, m := range o.StructOps {
		if m.Name == "control" {
			control = m
		}
	}
	if want := []string{"ssthresh", "undo_cwnd", "cong_avoid", "name"}; !slices.Equal(control.Members, want) || !control.Link || len(control.Funcs) != 4 || control.Funcs[3] != -1 {
		t.Errorf("%+v, want members %v, a link and three functions", control, want)
	}
	for member, want := range map[string]Status{"cong_control": OK, "no_such_member": Fails} {
		found := Finding{}
		k := oldest(t, NewWanted([]*Object{o}))
		for _, f := range (&Scene{o: o, k: k, loader: Libbpf}).structOps(&bpfobj.StructOpsMap{Type: "tcp_congestion_ops", Members: []string{"name", member}}) {
			found = f
		}
		if found.Status != want || want == Fails && (found.Code != StructOpsMember || found.Witness != "tcp_congestion_ops."+member) {
			t.Errorf("%s: %+v, want %s", member, found, want)
		}
	}
}
