// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/raceflag"
)

// TestMapDefinitions holds verdicts on the maps of two objects: those of one are
// right, and the one of the other has keys that are too long for old kernels.
func TestMapDefinitions(t *testing.T) {
	families := []Family{FamilyMapType, FamilyMapDef}
	expectVerdicts(t, "maps", families, map[string]expected{"uses_maps": {}})
	long := expected{before: "5.11", status: MayFail}
	expectVerdicts(t, "longkeys", families, map[string]expected{"uses_map": long, "uses_none": long})
}

// TestLoadersMaps checks the verdicts on definitions of maps that one loader completes, and the other passes to the kernel.
func TestLoadersMaps(t *testing.T) {
	raceflag.SkipSerial(t)
	for _, order := range []string{".bpfel", ".bpfeb"} {
		none := map[string]Status{"plain": Fails, "sends_typed": Fails, "sends_unsized": Fails, "sends_uneven": Fails, "looks_up_empty": Fails}
		expectLoads(t, "mapdefs"+order, Libbpf, Policy{}, none)
		all := map[string]Status{"plain": OK, "sends_typed": OK, "sends_unsized": OK, "sends_uneven": OK, "looks_up_empty": OK}
		expectLoads(t, "mapdefs"+order, Libbpf, policy(t, "loader-map typed", "loader-map unsized"), all)
		all["sends_uneven"] = Fails
		expectLoads(t, "mapdefs"+order, EbpfGo, Policy{}, all)
		expectLoads(t, "pinned"+order, Libbpf, Policy{}, map[string]Status{"plain": Fails, "looks_up": Fails})
		expectLoads(t, "pinned"+order, EbpfGo, Policy{}, map[string]Status{"plain": OK, "looks_up": Fails})
		expectLoads(t, "arenaless"+order, Libbpf, Policy{}, map[string]Status{"plain": Fails})
		expectLoads(t, "arenaless"+order, EbpfGo, Policy{}, map[string]Status{"plain": OK})
	}
	for _, p := range runOn(t, "mapdefs.bpfel").Programs {
		noted := slices.ContainsFunc(p.Notes, func(f Finding) bool { return f.Code == "map-def-no-entries" && f.Subject == "empty" })
		if noted != (p.Name == "looks_up_empty") {
			t.Errorf("%s: notes %v", p.Name, p.Notes)
		}
	}
}
