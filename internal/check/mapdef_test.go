// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
)

// TestMapDefinitions holds verdicts on the maps of two objects: those of one are
// right, and the one of the other has keys that are too long for old kernels.
func TestMapDefinitions(t *testing.T) {
	expectVerdicts(t, "maps", map[string]expected{"uses_maps": {}})
	long := expected{before: "5.11", status: rule.MayFail}
	expectVerdicts(t, "longkeys", map[string]expected{"uses_map": long, "uses_none": long})
}

// TestLoadersMaps checks the verdicts on definitions of maps that one loader completes, and the other passes to the kernel.
func TestLoadersMaps(t *testing.T) {
	for _, order := range []string{".bpfel", ".bpfeb"} {
		none := map[string]rule.Status{"plain": rule.Fails, "sends_typed": rule.Fails, "sends_unsized": rule.Fails, "sends_uneven": rule.Fails, "looks_up_empty": rule.Fails}
		expectLoads(t, "mapdefs"+order, rule.Libbpf, verdict.Policy{}, none)
		all := map[string]rule.Status{"plain": rule.OK, "sends_typed": rule.OK, "sends_unsized": rule.OK, "sends_uneven": rule.OK, "looks_up_empty": rule.OK}
		expectLoads(t, "mapdefs"+order, rule.Libbpf, policy(t, "loader-map typed", "loader-map unsized"), all)
		all["sends_uneven"] = rule.Fails
		expectLoads(t, "mapdefs"+order, rule.EbpfGo, verdict.Policy{}, all)
		expectLoads(t, "pinned"+order, rule.Libbpf, verdict.Policy{}, map[string]rule.Status{"plain": rule.Fails, "looks_up": rule.Fails})
		expectLoads(t, "pinned"+order, rule.EbpfGo, verdict.Policy{}, map[string]rule.Status{"plain": rule.OK, "looks_up": rule.Fails})
		expectLoads(t, "arenaless"+order, rule.Libbpf, verdict.Policy{}, map[string]rule.Status{"plain": rule.Fails})
		expectLoads(t, "arenaless"+order, rule.EbpfGo, verdict.Policy{}, map[string]rule.Status{"plain": rule.OK})
	}
	for _, p := range runOn(t, "mapdefs.bpfel").Programs {
		noted := slices.ContainsFunc(p.Notes, func(f rule.Finding) bool { return f.Code == "map-def-no-entries" && f.Subject == "empty" })
		if noted != (p.Name == "looks_up_empty") {
			t.Errorf("%s: notes %v", p.Name, p.Notes)
		}
	}
}
