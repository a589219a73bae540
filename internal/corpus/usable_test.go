// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
)

// TestUsable loads kernels whose structs are only declared. Kernels of the corpus have at most 1.8 such structs for 100 others.
func TestUsable(t *testing.T) {
	many := func(n int, format string) (lines string) {
		for i := range n {
			lines += fmt.Sprintf(format+"\n", i)
		}
		return lines
	}
	b := btf.NewBuilder(binary.LittleEndian)
	b.Type("f", btf.KindFunc, false, 0, uint32(b.Type("", btf.KindFuncProto, false, 0, 0)))
	k := &Kernel{BTF: b.Bytes()}
	if err := k.Load(t.Context(), new(core.Target), "k"); err == nil || !strings.HasSuffix(err.Error(), "no usable types: functions and no other types, as with gcc -g1") {
		t.Errorf("functions alone: error %v", err)
	}
	for _, tt := range []struct{ name, types, want string }{
		{"small", "struct s 4: a int 0", ""},
		{"task_struct declared", many(50, "struct s%d 4") + "fwd task_struct struct", "struct task_struct is only declared, as with CONFIG_DEBUG_INFO_REDUCED"},
		{"task_struct declared and defined", many(50, "struct s%d 4") + "fwd task_struct# struct\nstruct task_struct 4", ""},
		{"many declared", many(300, "struct s%d 4") + many(100, "fwd d%d struct"), "100 structs are only declared and 300 defined, as with CONFIG_DEBUG_INFO_REDUCED"},
		{"few declared", many(500, "struct s%d 4") + many(100, "fwd d%d struct"), ""},
		{"functions only", "proto # void\nfunc f #", ""}, // the notation has ints
	} {
		k := &Kernel{BTF: testbtf.Types(t, binary.LittleEndian, tt.types)}
		err := k.Load(t.Context(), new(core.Target), "k")
		if (err == nil) != (tt.want == "") || err != nil && !strings.HasSuffix(err.Error(), "no usable types: "+tt.want) {
			t.Errorf("%s: error %v", tt.name, err)
		}
	}
}
