// SPDX-License-Identifier: Apache-2.0

package minimize

import (
	"encoding/binary"
	"testing"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/relo"
)

// TestPointerNotToVoid uses the offset of a pointer, for which its target does not
// count, and compares the struct with one in which it leads to void, which must not
// match.
func TestPointerNotToVoid(t *testing.T) {
	for _, kernel := range []string{
		"struct foo 8: p *bar 0\n struct bar 8: x int 0, next *bar 4",
		"struct foo 8: p *int 0",
		"struct foo 8: p **void 0",
		"struct foo 8: p *fn 0\n proto fn int: *foo",
	} {
		local := "struct foo 8: p *void 0"
		o, _ := smallObject(t, local, "byte_off struct foo.p\n type_matches struct foo")
		target, err := testinput.NewKernel("k", testbtf.Types(t, binary.LittleEndian, kernel))
		if err != nil {
			t.Fatal(err)
		}
		out, err := blob(New([]*core.Object{o}, Options{}).Minimize(t.Context(), target))
		if err != nil {
			t.Errorf("%s: %v", kernel, err)
			continue
		}
		small, err := testinput.NewKernel("minimized", out)
		if err != nil {
			t.Fatal(err)
		}
		log, err := core.NewSet(o).Run(t.Context(), small)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []relo.Result{relo.Resolved, relo.Absent} {
			if got := log.Entries[i].Result; got != want {
				t.Errorf("%s: %s: %s, want %s", kernel, log.Entries[i].Relocation(), got, want)
			}
		}
	}
}
