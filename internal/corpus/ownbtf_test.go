// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"encoding/binary"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
)

// TestOwnBTF decides by what there is of a kernel whether it has BTF of its own.
func TestOwnBTF(t *testing.T) {
	const plain = "struct task_struct 4: pid int 0\nproto #p int: void\n"
	functions := func(names ...string) string {
		all := plain
		for _, n := range names {
			all += "func " + n + " #p\n"
		}
		return all
	}
	made := btfc.Made{By: "pahole v1.24"}
	for name, tt := range map[string]struct {
		types, config string
		made          btfc.Made
		from, want    btfc.OwnBTF
	}{
		"nothing":           {types: plain, want: btfc.OwnBTFUnknown},
		"setting":           {types: plain, config: "CONFIG_BPF=y\n" + OwnBTFSetting + "=y\n", made: made, want: btfc.HasBTF},
		"only setting":      {types: plain, config: OwnBTFSetting + "=y\n", want: btfc.HasBTF},
		"no setting":        {types: functions(OwnBTFInit), config: "CONFIG_BPF=y\n", from: btfc.HasBTF, want: btfc.WithoutBTF},
		"another setting":   {types: plain, config: "CONFIG_DEBUG_INFO_BTF_MODULES=y\n", want: btfc.WithoutBTF},
		"DWARF":             {types: functions(OwnBTFInit), made: made, want: btfc.WithoutBTF},
		"function":          {types: functions(BPFInit, OwnBTFInit), want: btfc.HasBTF},
		"no function":       {types: functions(BPFInit), from: btfc.HasBTF, want: btfc.WithoutBTF},
		"struct":            {types: plain + "struct btf_module 4: id int 0\n", want: btfc.HasBTF},
		"image":             {types: plain, from: btfc.HasBTF, want: btfc.HasBTF},
		"index":             {types: plain, from: btfc.WithoutBTF, want: btfc.WithoutBTF},
		"functions of some": {types: functions("do_exit"), want: btfc.OwnBTFUnknown},
	} {
		b, err := btf.New(testbtf.Types(t, binary.LittleEndian, tt.types), nil)
		if err != nil {
			t.Fatal(err)
		}
		k := &Kernel{Made: tt.made, From: tt.from}
		if tt.config != "" {
			k.Config = []byte(tt.config)
		}
		if got := k.OwnBTF(b); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}
