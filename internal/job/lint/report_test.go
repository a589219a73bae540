// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"testing"

	"github.com/btfgen/btfgen/pkg/kernel"
)

func TestCodes(t *testing.T) {
	last := "error"
	for _, c := range Codes {
		if c.Name == "" || c.Text == "" {
			t.Errorf("code %q: %q", c.Name, c.Text)
		}
		if c.Severity < last {
			t.Errorf("%s is out of order", c.Name)
		}
		last = c.Severity
	}
}

func TestUnknownName(t *testing.T) {
	e := newEntry(kernel.Key{Release: "6.1"}, "c.btf", 1)
	if e.Kernel != "c.btf" {
		t.Errorf("name of an unknown kernel: %s", e.Kernel)
	}
}
