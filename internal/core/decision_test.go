// SPDX-License-Identifier: Apache-2.0

package core

import (
	"encoding/binary"
	"sync"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/pkg/relo"
)

// TestDecisionsShared reads the same decisions in several goroutines. The race detector reports any write. Without it the test compares
// the reasons.
func TestDecisionsShared(t *testing.T) {
	o, err := ParseObject("o", testbtf.Object(t, binary.LittleEndian, "struct s 8: a int 0, b int 32\nstruct u 4: a int 0\nstruct gone 4: a int 0",
		"byte_off struct s.b\nbyte_sz struct s.b\nbyte_off struct u.a\nbyte_off struct gone.a\ntype_matches struct u", 1))
	if err != nil {
		t.Fatal(err)
	}
	var k Target
	if err := k.Load(t.Context(), "k", testbtf.Types(t, binary.LittleEndian, "struct s 8: a int 0\nunion u 4: a int 0\nstruct u 4: b int 0")); err != nil {
		t.Fatal(err)
	}
	var tb Table
	if err := new(Filler).Fill(t.Context(), &tb, NewSet(o), &k, nil); err != nil {
		t.Fatal(err)
	}
	for loader, decisions := range map[string]func(func(*Record, *Decision) bool){"libbpf": tb.Libbpf().Decisions(0), "aya": tb.Aya().Decisions(0)} {
		var all []*Decision
		for _, d := range decisions {
			all = append(all, d)
		}
		reasons := make([][]relo.Reason, 8)
		var wg sync.WaitGroup
		for i := range reasons {
			wg.Go(func() {
				for _, d := range all {
					d.Modules()
					d.Disagreeing()
					d.HiddenIn()
					reasons[i] = append(reasons[i], d.Reason())
				}
			})
		}
		wg.Wait()
		for _, l := range reasons {
			for j, r := range l {
				if (r == relo.Reason{}) || r != reasons[0][j] {
					t.Errorf("%s: record %d: %v, another goroutine has %v", loader, j, r, reasons[0][j])
				}
			}
		}
	}
}
