// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"os"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/check/interp"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/kernel"
)

const (
	usualConfig  = "# Linux/x86 6.1.90 Kernel Configuration\nCONFIG_BPF_SYSCALL=y\nCONFIG_BPF_JIT=y\nCONFIG_BPF_EVENTS=y\nCONFIG_DEBUG_INFO_BTF=y\nCONFIG_HZ=250\nCONFIG_DEFAULT_HOSTNAME=\"(none)\"\nCONFIG_MODULES=y\n"
	usualSymbols = "d init_net\nt _stext\nt vfs_read\nt vfs_open\nt schedule\n"
)

// TestHiddenPatchLevel takes it from the configuration: Debian's release does not show it.
func TestHiddenPatchLevel(t *testing.T) {
	for version, want := range map[string]interp.Number{
		"6.1.90":   {V: 6<<16 | 1<<8 | 90},
		"6.1.1":    {V: 6<<16 | 1<<8 | 1},
		"6.1.0":    {V: 6<<16 | 1<<8, Unknown: 0xff},
		"5.10.99":  {V: 6<<16 | 1<<8, Unknown: 0xff}, // the configuration of another kernel
		"999.1.90": {V: 6<<16 | 1<<8, Unknown: 0xff},
	} {
		k := &Inventory{want: new(Wanted), version: VersionOf(kernel.Key{ID: "debian", Release: "6.1.0-47-amd64"})}
		k.readConfig([]byte(strings.Replace(usualConfig, "6.1.90", version, 1)))
		if k.version != want {
			t.Errorf("%s: %+v, want %+v", version, k.version, want)
		}
	}
}

// TestSetting compares with what libbpf writes into variables.
func TestSetting(t *testing.T) {
	data, err := os.ReadFile(testinput.Path(t, "testdata", "bpf", "settings.bpfel.o"))
	if err != nil {
		t.Fatal(err)
	}
	o, err := Parse(t.Context(), "settings", data)
	if err != nil {
		t.Fatal(err)
	}
	const refused = ^uint64(0)
	type values map[string]uint64 // numbers by their text
	all := map[string]values{
		"CONFIG_BPF_SYSCALL":      {"y": 1, "n": 0, "m": refused, "1": 1, "2": refused, `"y"`: refused},
		"CONFIG_BPF_JIT":          {"y": 1, "n": 0, "m": 2, "1": refused},
		"CONFIG_BPF_EVENTS":       {"y": 'y', "m": 'm', "65": 65, "127": 127, "128": refused, "-128": 0x80, "-129": refused},
		"CONFIG_HZ":               {"250": 250, "0xff": 255, "010": 8, "-1": 0xffffffff, "2147483648": refused, "-2147483648": 0x80000000, "y": refused, "": refused, "x": refused},
		"CONFIG_DEFAULT_HOSTNAME": {`"ab"`: 0x6261, `""`: 0, `"0123456789abcdefgh"`: 0x3736353433323130, `"`: refused, "1": refused, "y": refused},
	}
	found := 0
	for i := range o.Externs {
		x := &o.Externs[i]
		for text, want := range all[x.Name] {
			found++
			k := &Inventory{known: knowledge{config: map[string]string{x.Name: text}}}
			got, err := k.setting(o, x)
			if want == refused && err == nil || want != refused && (err != nil || got.V != want || got.Unknown != 0) {
				t.Errorf("%s=%s: %+v, %v, want %#x", x.Name, text, got, err, want)
			}
		}
	}
	if found != 32 {
		t.Errorf("%d values were tried", found)
	}
}
