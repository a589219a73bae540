// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"
	"testing"

	"github.com/btfgen/btfgen/pkg/kernel"
)

func TestCodes(t *testing.T) {
	severities := []string{"error", "warning", "note"}
	last := 0
	for _, c := range Codes {
		if c.Name == "" || c.Text == "" {
			t.Errorf("code %q: %q", c.Name, c.Text)
		}
		n := slices.Index(severities, c.Severity)
		if n < last {
			t.Errorf("%s is out of order", c.Name)
		}
		last = n
	}
}

func TestUnknownName(t *testing.T) {
	e := newEntry(kernel.Key{Release: "6.1"}, "c.btf", 1)
	if e.Kernel != "c.btf" {
		t.Errorf("name of an unknown kernel: %s", e.Kernel)
	}
}
