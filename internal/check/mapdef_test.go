// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
)

// TestMapDefinitions holds verdicts on the maps of two objects: those of one are
// right, and the one of the other has keys that are too long for old kernels.
func TestMapDefinitions(t *testing.T) {
	expectVerdicts(t, "maps", map[string]expected{"uses_maps": {}})
	long := expected{before: "5.11", status: MayFail}
	expectVerdicts(t, "longkeys", map[string]expected{"uses_map": long, "uses_none": long})
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

// TestInnerMapNames checks maps of maps on kernels that refuse a dot in the name of a map, as libbpf gives to inner maps.
func TestInnerMapNames(t *testing.T) {
	raceflag.SkipSerial(t)
	k := oldest(t, newWanted(nil))
	for _, release := range []release{Linux(5, 10), Linux(5, 2), Linux(5, 1), Linux(4, 19)} {
		k.Age(release)
		for name, refused := range map[string]bool{"few": true, "fourteen_chars": true, "a_name_of_15_ch": false, "a_name_of_more_than_15_chars": false} {
			o := programOf("socket", []insn{{Op: 0xb7}, {Op: bpfobj.OpExit}})
			o.Maps = []bpfobj.Map{
				{Name: name, Type: uint32(ebpf.ArrayOfMaps), KeySize: 4, ValueSize: 4, MaxEntries: 1, Inner: &bpfobj.Map{Type: uint32(ebpf.Array), KeySize: 4, ValueSize: 4, MaxEntries: 1}},
				{Name: "plain", Type: uint32(ebpf.Array), KeySize: 4, ValueSize: 4, MaxEntries: 1},
			}
			for _, l := range []Loader{Libbpf, EbpfGo} {
				found := pairOn(o, k, l).definitions()
				want := refused && release < Linux(5, 2) && l == Libbpf
				if got := len(found) == 1 && found[0].f.Status == Fails && found[0].f.Witness != ""; got != want || len(found) > 1 {
					t.Errorf("%s on %s with %s: %+v", name, release, l, found)
				}
			}
		}
	}
}

// TestRingPages checks ring buffers on kernels with large pages, which the configuration shows: libbpf rounds up, ebpf-go does not.
func TestRingPages(t *testing.T) {
	raceflag.SkipSerial(t)
	for _, tt := range []struct {
		setting string
		entries uint32
		refused bool
	}{
		{"", 4096, false},
		{"CONFIG_ARM64_4K_PAGES", 4096, false},
		{"CONFIG_ARM64_16K_PAGES", 4096, true},
		{"CONFIG_ARM64_16K_PAGES", 16384, false},
		{"CONFIG_ARM64_64K_PAGES", 32768, true},
		{"CONFIG_PPC_64K_PAGES", 65536, false},
		{"CONFIG_PAGE_SIZE_16KB", 8192, true},
	} {
		want := newWanted(nil)
		k := oldest(t, want)
		k.known.config = map[string]string{}
		if tt.setting != "" {
			k.known.config[tt.setting] = "y"
		}
		if tt.refused && !want.config[tt.setting] {
			t.Errorf("%s is not read", tt.setting)
		}
		o := programOf("socket", []insn{{Op: 0xb7}, {Op: bpfobj.OpExit}})
		o.Maps = []bpfobj.Map{{Name: "events", Type: uint32(ebpf.RingBuf), MaxEntries: tt.entries}}
		for _, l := range []Loader{Libbpf, EbpfGo} {
			found := pairOn(o, k, l).definitions()
			found = slices.DeleteFunc(found, func(p part) bool { return p.f.Code != MapRingSize })
			should := tt.refused && l == EbpfGo
			if got := len(found) == 1 && !found[0].f.OfFile() && found[0].f.Decided == ByConfig; got != should || !should && len(found) > 0 {
				t.Errorf("%d bytes with %s and %s: %+v", tt.entries, tt.setting, l, found)
			}
		}
	}
}
