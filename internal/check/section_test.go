// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
)

// TestSections checks the verdicts on programs in sections that only cilium/ebpf knows: libbpf has no type for them, and loads none of
// the object. Where either loader may load it, that is cilium/ebpf.
func TestSections(t *testing.T) {
	programs := []string{"sock", "filter", "classifies", "device", "socket_ops", "marked"}
	libbpf, ebpfGo := map[string]rule.Status{"plain": rule.OK}, map[string]rule.Status{"plain": rule.OK}
	for _, p := range programs {
		libbpf[p], ebpfGo[p] = rule.Fails, rule.OK
	}
	for _, order := range []string{".bpfel", ".bpfeb"} {
		expectLoads(t, "sections"+order, rule.Libbpf, verdict.Policy{}, libbpf)
		expectLoads(t, "sections"+order, rule.EbpfGo, verdict.Policy{}, ebpfGo)
		both := runOn(t, "sections"+order).Objects[0]
		if len(both.Loaders) != 2 || slices.Contains(both.Status, rule.Fails) || !slices.Contains(both.Loaders[0].Status, rule.Fails) {
			t.Errorf("with both loaders: %v: %v", both.Status, both.Loaders)
		}
		without := policy(t, "optional sock", "optional filter", "optional classifies", "optional device", "optional socket_ops")
		if row := runWith(t, Config{Policy: without}, "sections"+order).Objects[0]; row.Loaders != nil || slices.Contains(row.Status, rule.Fails) {
			t.Errorf("with both loaders, and programs that it does without: %v: %v", row.Status, row.Loaders)
		}
	}
}
