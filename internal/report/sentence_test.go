// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
)

// TestNamed wants the map or function in sentences that are about more than it.
func TestNamed(t *testing.T) {
	for _, tt := range []struct {
		f    rule.Finding
		want string
	}{
		{rule.Finding{Code: rule.MapTypeMissing, Subject: "BPF_MAP_TYPE_ARENA", Args: rule.Args{Name: "pages"}},
			"map type BPF_MAP_TYPE_ARENA: the kernel has no such maps, as pages is [map-type-missing]"},
		{rule.Finding{Code: rule.MapFlagUnknown, Subject: "events", Args: rule.Args{Count: 0x400}},
			"map events: the kernel does not know its flag BPF_F_MMAPABLE (0x400) [map-def-flag-unknown]"},
		{rule.Finding{Code: rule.MapFlagUnknown, Subject: "events", Args: rule.Args{Count: 1 << 31}},
			"map events: the kernel does not know its flag 0x80000000 [map-def-flag-unknown]"},
		{rule.Finding{Code: rule.HelperMap, Subject: "bpf_map_lookup_elem", Args: rule.Args{Name: "XSKMAP", Other: "sockets"}},
			"helper bpf_map_lookup_elem: it does not take maps of type XSKMAP, as sockets is [helper-map]"},
		{rule.Finding{Code: rule.FeatureMissing, Subject: "calls of kfuncs", Args: rule.Args{Name: "bpf_task_acquire"}},
			"calls of kfuncs (bpf_task_acquire): not supported [feature-missing]"},
		{rule.Finding{Code: rule.StructOpsMissing, Subject: "struct_ops sched_ext_ops", Args: rule.Args{Name: "simple_ops"}},
			"struct_ops sched_ext_ops (simple_ops): the kernel has no such struct_ops [struct-ops-missing]"},
	} {
		if got := Sentence(&tt.f); got != tt.want {
			t.Errorf("%s\nwant %s", got, tt.want)
		}
	}
}

// TestReaches wants a sentence for every way to an instruction, and its name in the schema.
func TestReaches(t *testing.T) {
	data, err := os.ReadFile("../../docs/schema/check.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Defs struct {
			Finding struct {
				Properties struct{ Reach struct{ Enum []string } }
			}
		} `json:"$defs"`
	}
	if err := json.Unmarshal(data, &schema); err != nil {
		t.Fatal(err)
	}
	names := schema.Defs.Finding.Properties.Reach.Enum
	if len(names) != len(reaches) {
		t.Errorf("%d names in the schema, %d sentences", len(names), len(reaches))
	}
	for _, name := range names {
		if reaches[rule.Reach(name)] == "" {
			t.Errorf("%s in the schema has no sentence", name)
		}
	}
}
