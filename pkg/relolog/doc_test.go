// SPDX-License-Identifier: Apache-2.0

package relolog_test

import (
	"encoding/binary"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/pkg/relo"
	"github.com/btfgen/btfgen/pkg/relolog"
)

// TestSpecExample runs the example of package relo's documentation.
func TestSpecExample(t *testing.T) {
	const local = "struct point 4: x short 0, y short 2\n" +
		"union #corners 16: corners point[4] 0, radius u64 0\n" +
		"struct shape 24: kind int 0, #corners #corners 8"
	object := testbtf.Object(t, binary.LittleEndian, "int short 2 signed\n"+local, "byte_off struct shape.corners[2].y", 18)
	o, err := relolog.ParseObject("shape.bpf.o", object)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		corners string
		result  relo.Result
	}{{"point[8]", relo.Resolved}, {"point[2]", relo.Poisoned}} {
		kernel := "int short 2 signed\nstruct point 4: x short 0, y short 2\n" +
			"struct shape 56: flags u64 0, seen u64 8, corners " + tt.corners + " 16, kind int 48"
		k, err := relolog.NewTarget(t.Context(), "kernel", testbtf.Types(t, binary.LittleEndian, kernel))
		if err != nil {
			t.Fatal(err)
		}
		l, err := relolog.Run(t.Context(), o, k)
		if err != nil || len(l.Entries) != 1 {
			t.Fatalf("%d entries, %v", len(l.Entries), err)
		}
		e := l.Entries[0]
		if e.Local.Raw != "0:1:0:2:1" || e.Local.Path != "corners[2].y" || e.Old != 18 || len(e.Candidates) != 1 || e.Result != tt.result {
			t.Errorf("%s: %+v", tt.corners, e)
		}
		if tt.result == relo.Resolved && (e.Target == nil || e.Target.Raw != "0:2:2:1" || *e.New != 26) {
			t.Errorf("%s: %+v", tt.corners, e)
		}
	}
}
