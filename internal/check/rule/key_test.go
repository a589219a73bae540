// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/testing/testinput"
)

// noRecords is the records of an object without any.
func noRecords(t *testing.T) *core.Object {
	t.Helper()
	o, err := core.ParseObject("none", testinput.Named(t, "nobtf.bpfel.o").Data)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestCalleesCalledBack wants what a function has called back among what exploring it depends on.
func TestCalleesCalledBack(t *testing.T) {
	o, err := Parse(t.Context(), "loops", testinput.Named(t, "loops.bpfel.o").Data)
	if err != nil {
		t.Fatal(err)
	}
	for i := range o.Programs {
		pr := &o.Programs[i]
		if calls, shared := o.Callees(pr.Fn); len(calls) != 1 || !shared || !slices.Contains(pr.Funcs, calls[0]) {
			t.Errorf("%s: %v, %t", o.ProgramName(i), calls, shared)
		}
	}
}
