// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/internal/testing/testlimit"
)

func keepOf(t *testing.T, patterns ...string) *KeepPatterns {
	t.Helper()
	kp, err := ParseKeep(patterns...)
	if err != nil {
		t.Fatal(err)
	}
	return kp
}

func loaded(t *testing.T, data []byte) *Target {
	t.Helper()
	k := new(Target)
	if err := k.Load(t.Context(), "k", data); err != nil {
		t.Fatal(err)
	}
	return k
}

const keepTypes = `
	struct foo 32: a int 0, # #in 8, p *bar 16, l bar[2] 24
	struct #in 8: a___x int 0, # #un 4
	union #un 4: deep int 0
	struct bar 4: b int 0, a u32 @8:3
	struct foo#2 4: other int 0
	union foo#3 4: u int 0
	enum e 4: X 0, Y 1
	enum #anon 4: TCP_A 1, TCP_B 2
	enum64 e#64 8: Z 5
	fwd gone struct
	typedef foo#t int
	proto fn void: a int
	func foo.isra.0 fn
	var foo#v int
`

// text is a path as names: "foo.p->b".
func (k *Kept) text() string {
	t := k.BTF.Type(k.Type)
	var b strings.Builder
	b.WriteString(typeName(t))
	for _, n := range k.Path {
		u := k.BTF.Type(n.Type)
		switch n.What {
		case NeedMember:
			fmt.Fprintf(&b, ".%s", u.BTF().Name(u.Member(n.Idx).NameOff))
		case NeedEnumerator:
			fmt.Fprintf(&b, "::%s", u.BTF().Name(u.Enumerator(n.Idx).NameOff))
		}
	}
	return b.String()
}

func TestKeepFind(t *testing.T) {
	k := loaded(t, testbtf.Types(t, binary.LittleEndian, keepTypes))
	for _, tc := range []struct{ patterns, want, unmatched string }{
		{"struct:foo", "struct foo, struct foo", ""},
		{"struct:f*", "struct foo, struct foo", ""},
		{"union:foo", "union foo", ""},
		{"struct:foo.a", "struct foo.a", ""},
		{"struct:foo.deep", "struct foo...deep", ""},
		{"struct:foo.a*", "struct foo.a, struct foo..a___x", ""},
		{"struct:*.b,a", "struct bar.a, struct bar.b, struct foo.a", ""},
		{"struct:foo.b", "", "struct:foo.b"},
		{"struct:gone", "", "struct:gone"},
		{"struct:", "", ""},
		{"enum:e", "enum e, enum e", ""},
		{"enum:*", "enum e, enum e", ""},
		{"enum:e.Z", "enum e::Z", ""},
		{"enum:.TCP_*", "enum <anon>::TCP_A, enum <anon>::TCP_B", ""},
		{"enum:e.TCP_A", "", "enum:e.TCP_A"},
		{"typedef:foo", "foo", ""},
		{"func:foo.isra.?", "func foo.isra.0", ""},
		{"func:foo", "", "func:foo"},
		{"var:foo", "var foo", ""},
		{"var:foo var:foo union:none", "var foo", "union:none"},
	} {
		kp, err := ParseKeep(strings.Fields(tc.patterns)...)
		if tc.patterns == "struct:" {
			if err == nil {
				t.Errorf("%s: no error", tc.patterns)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		unmatched, err := kp.Find(t.Context(), k, func(kept *Kept) { got = append(got, kept.text()) })
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(got)
		want := strings.Split(tc.want, ", ")
		slices.Sort(want)
		if strings.Join(got, ", ") != strings.Join(want, ", ") || strings.Join(unmatched, " ") != tc.unmatched {
			t.Errorf("%s: have %q, unmatched %q; want %q, %q", tc.patterns, got, unmatched, want, tc.unmatched)
		}
	}
}

// TestKeepHash wants the order in which patterns are typed not to matter, and all else to.
func TestKeepHash(t *testing.T) {
	a := keepOf(t, "struct:foo.a,b", "enum:e").Hash()
	if b := keepOf(t, "enum:e", "struct:foo.b", "enum:e", "struct:foo.a").Hash(); a != b {
		t.Error("the order of patterns changes the hash")
	}
	if b := keepOf(t, "struct:foo.a", "enum:e").Hash(); a == b {
		t.Error("the hash does not depend on the patterns")
	}
	if keepOf(t).Hash() != Hash() || (*KeepPatterns)(nil).Hash() != Hash() {
		t.Error("no pattern changes the hash")
	}
}

// TestKeepBounds has types that take more than anyone would look at.
func TestKeepBounds(t *testing.T) {
	slow.Skip(t)
	raceflag.SkipSerial(t)
	deep := btf.NewBuilder(binary.LittleEndian)
	for i := range uint32(2 * limits.KeptDepth) {
		deep.Type("s", btf.KindStruct, false, 1, 4)
		deep.Word(deep.String("m"), i+2, 0)
	}
	deep.Type("end", btf.KindStruct, false, 0, 4)
	k := loaded(t, deep.Bytes())
	var e *limits.Exceeded
	if d, err := keepOf(t, "struct:s").Compare(t.Context(), k, k); d != nil || !errors.As(err, &e) {
		t.Errorf("types inside each other: %v, %v", d, err)
	}

	// A struct inside itself, anonymously, many times over.
	wide := btf.NewBuilder(binary.LittleEndian)
	wide.Type("s", btf.KindStruct, false, 100, 4)
	for range 100 {
		wide.Word(0, 1, 0)
	}
	if _, err := keepOf(t, "struct:s.x").Find(t.Context(), loaded(t, wide.Bytes()), nil); !errors.As(err, &e) {
		t.Errorf("a struct inside itself: error %v", err)
	}
	if _, err := keepOf(t, "struct:s.x").Find(testlimit.Looks(3), loaded(t, wide.Bytes()), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that ends: error %v", err)
	}
}
