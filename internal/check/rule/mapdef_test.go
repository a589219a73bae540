// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"slices"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
)

// TestInnerMapNames checks maps of maps on kernels that refuse a dot in the name of a map, as libbpf gives to inner maps.
func TestInnerMapNames(t *testing.T) {
	raceflag.SkipSerial(t)
	k := oldest(t, NewWanted(nil))
	for _, release := range []Release{Linux(5, 10), Linux(5, 2), Linux(5, 1), Linux(4, 19)} {
		Age(k, release)
		for name, refused := range map[string]bool{"few": true, "fourteen_chars": true, "a_name_of_15_ch": false, "a_name_of_more_than_15_chars": false} {
			o := programOf("socket", []insn{{Op: 0xb7}, {Op: bpfobj.OpExit}})
			o.Maps = []bpfobj.Map{
				{Name: name, Type: uint32(ebpf.ArrayOfMaps), KeySize: 4, ValueSize: 4, MaxEntries: 1, Inner: &bpfobj.Map{Type: uint32(ebpf.Array), KeySize: 4, ValueSize: 4, MaxEntries: 1}},
				{Name: "plain", Type: uint32(ebpf.Array), KeySize: 4, ValueSize: 4, MaxEntries: 1},
			}
			for _, l := range []Loader{Libbpf, EbpfGo} {
				found := sceneOn(o, k, l).definitions()
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
		want := NewWanted(nil)
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
			found := sceneOn(o, k, l).definitions()
			found = slices.DeleteFunc(found, func(p neededPart) bool { return p.f.Code != MapRingSize })
			should := tt.refused && l == EbpfGo
			if got := len(found) == 1 && !found[0].f.OfFile() && found[0].f.Decided == ByConfig; got != should || !should && len(found) > 0 {
				t.Errorf("%d bytes with %s and %s: %+v", tt.entries, tt.setting, l, found)
			}
		}
	}
}
