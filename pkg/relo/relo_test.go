// SPDX-License-Identifier: Apache-2.0

package relo_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/pkg/relo"
)

// TestText encodes and decodes every kind and result, and rejects other text.
func TestText(t *testing.T) {
	for _, k := range []relo.Kind{relo.ByteOffset, relo.Signed, relo.TypeMatches, relo.TypeMatches + 1, 1 << 31} {
		text, err := k.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var got relo.Kind
		if err := got.UnmarshalText(text); err != nil || got != k {
			t.Errorf("%s: decoded as %s, %v", text, got, err)
		}
	}
	for r := relo.Resolved; r <= relo.Error; r++ {
		text, err := json.Marshal(relo.Counts{r: 1})
		if err != nil {
			t.Fatal(err)
		}
		var got relo.Counts
		if err := json.Unmarshal(text, &got); err != nil || len(got) != 1 || got[r] != 1 {
			t.Errorf("%s: decoded as %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "byte_of", "unknown(3)", "unknown(99", "unknown(-1)", "resolve", "unknown(5)"} {
		if new(relo.Kind).UnmarshalText([]byte(text)) == nil || new(relo.Result).UnmarshalText([]byte(text)) == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

// TestNames checks how relocations are named.
func TestNames(t *testing.T) {
	for _, c := range []struct {
		kind       relo.Kind
		path, want string
	}{
		{relo.ByteOffset, "mm.pgd", "byte_off struct s.mm.pgd"},
		{relo.ByteOffset, "[1].mm", "byte_off struct s[1].mm"},
		{relo.TypeExists, "", "type_exists struct s"},
		{relo.EnumvalValue, "A", "enumval_value struct s::A"},
	} {
		e := relo.Entry{Kind: c.kind, Local: relo.Spec{Type: "struct s", Path: c.path}}
		if got := e.Relocation(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestProofError checks what a failed proof says, and what errors.Is finds in it.
func TestProofError(t *testing.T) {
	e := relo.ProofError{Kernel: "6.1", Relocation: "--keep struct:task", Candidate: "struct task", Full: "type 7", Minimized: "none like it"}
	if want := "6.1: minimized BTF decides differently: --keep struct:task: type 7, minimized none like it"; e.Error() != want || !errors.Is(&e, relo.ErrProof) {
		t.Errorf("%v, want %s", &e, want)
	}
	e.Object = "x.bpf.o"
	if want := "6.1: minimized BTF decides differently: x.bpf.o: --keep"; !strings.HasPrefix(e.Error(), want) {
		t.Errorf("%v, want %s", &e, want)
	}
}
