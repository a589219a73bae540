// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
)

// TestSectionNotes wants a note on a name that loaders read differently.
func TestSectionNotes(t *testing.T) {
	for name, want := range map[string]bool{"socket1": true, "classifier/x/y": true, "socket": false, "kprobe/x": false, "nonsense": false} {
		pr := bpfobj.Program{Section: name, Attach: bpfobj.SectionOf(name)}
		o := &Object{Code: &bpfobj.Code{Programs: []bpfobj.Program{pr}}}
		notes := o.external(0, nil)
		if got := len(notes) == 1 && notes[0].Subject == name && notes[0].Code == SectionUnknown; got != want {
			t.Errorf("%s: %v", name, notes)
		}
	}
}

// TestSections checks the verdicts on programs in sections that only cilium/ebpf knows: libbpf has no type for them, and loads none of
// the object. Where either loader may load it, that is cilium/ebpf.
func TestSections(t *testing.T) {
	raceflag.SkipSerial(t)
	programs := []string{"sock", "filter", "classifies", "device", "socket_ops", "marked"}
	libbpf, ebpfGo := map[string]Status{"plain": OK}, map[string]Status{"plain": OK}
	for _, p := range programs {
		libbpf[p], ebpfGo[p] = Fails, OK
	}
	for _, order := range []string{".bpfel", ".bpfeb"} {
		expectLoads(t, "sections"+order, Libbpf, Policy{}, libbpf)
		expectLoads(t, "sections"+order, EbpfGo, Policy{}, ebpfGo)
		both := runOn(t, "sections"+order).Objects[0]
		if len(both.Loaders) != 2 || slices.Contains(both.Status, Fails) || !slices.Contains(both.Loaders[0].Status, Fails) {
			t.Errorf("with both loaders: %v: %v", both.Status, both.Loaders)
		}
		without := policy(t, "optional sock", "optional filter", "optional classifies", "optional device", "optional socket_ops")
		if row := runWith(t, Config{Policy: without}, "sections"+order).Objects[0]; row.Loaders != nil || slices.Contains(row.Status, Fails) {
			t.Errorf("with both loaders, and programs that it does without: %v: %v", row.Status, row.Loaders)
		}
	}
}
