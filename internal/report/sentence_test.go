// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/btfgen/btfgen/internal/check"
)

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
	if len(names) != len(reaches) || len(names) != int(check.CallsNest) {
		t.Errorf("%d names in the schema, %d sentences, %d values", len(names), len(reaches), check.CallsNest)
	}
	for i, name := range names {
		r := check.Reach(i + 1)
		if got, err := r.MarshalText(); string(got) != name || err != nil || reaches[r] == "" {
			t.Errorf("value %d is %s, in the schema %s; its sentence is %q", r, got, name, reaches[r])
		}
	}
}
