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
	if len(names) != len(reaches) {
		t.Errorf("%d names in the schema, %d sentences", len(names), len(reaches))
	}
	for _, name := range names {
		if reaches[check.Reach(name)] == "" {
			t.Errorf("%s in the schema has no sentence", name)
		}
	}
}
