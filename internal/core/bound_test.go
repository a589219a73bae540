// SPDX-License-Identifier: Apache-2.0

package core

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/pkg/relo"
)

// ring returns n structs, each with a pointer to the next, and a type_matches
// relocation of each.
func ring(n int) (types, asks string) {
	var t, a strings.Builder
	for i := range n {
		fmt.Fprintf(&t, "struct s%d 8: next *s%d 0\n", i, (i+1)%n)
		fmt.Fprintf(&a, "type_matches struct s%d\n", i)
	}
	return t.String(), a.String()
}

// TestSignaturesOfLarge has an object whose records each are about all its
// types: the signatures are bounded, and the questions stay distinct.
func TestSignaturesOfLarge(t *testing.T) {
	slow.Skip(t)
	raceflag.SkipSerial(t)
	const n = 2000
	types, asks := ring(n)
	o, err := ParseObject("o", testbtf.Object(t, binary.LittleEndian, types, asks))
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s := NewSet(o)
	sum := Hash(o)
	runtime.ReadMemStats(&after)
	if len(s.questions) != n {
		t.Errorf("%d questions, want %d", len(s.questions), n)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 8*limits.SignatureBytes {
		t.Errorf("%d MiB allocated", got>>20)
	}
	if again := Hash(o); again != sum {
		t.Error("the hash is another the second time")
	}
	other, err := ParseObject("o", testbtf.Object(t, binary.LittleEndian, "struct extra 8\n"+types, asks))
	if err != nil {
		t.Fatal(err)
	}
	if len(NewSet(o, other).questions) < n {
		t.Error("questions of two objects are taken for one")
	}
}

// TestNames has a type and members whose names are too long.
func TestNames(t *testing.T) {
	long := strings.Repeat("x", limits.NameBytes+1)
	o, err := ParseObject("o", testbtf.Object(t, binary.LittleEndian, "struct s 8: "+long+" int 0\nstruct u 4: a int 0", "type_matches struct s\nbyte_off struct u.a", 1))
	if err != nil {
		t.Fatal(err)
	}
	var k Target
	if err := k.Load(t.Context(), "k", testbtf.Types(t, binary.LittleEndian, "struct s 8: "+long+" int 0\nstruct u 4: a int 0")); err != nil {
		t.Fatal(err)
	}
	var tb Table
	if err := new(Filler).Fill(t.Context(), &tb, NewSet(o), &k, nil); err != nil {
		t.Fatal(err)
	}
	var results []relo.Result
	for _, d := range tb.Libbpf().Decisions(0) {
		results = append(results, d.Result)
	}
	if len(results) != 2 || results[0] != relo.Absent || results[1] != relo.Resolved {
		t.Errorf("results %v", results)
	}
}
