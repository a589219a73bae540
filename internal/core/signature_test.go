// SPDX-License-Identifier: Apache-2.0

package core

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/pkg/relo"
)

func hashObject(t *testing.T, file string) *Object {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../testdata/bpf", file))
	if err != nil {
		t.Fatal(err)
	}
	o, err := ParseObject(file, data)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestHash(t *testing.T) {
	a, b, c := hashObject(t, "execsnoop.bpfel.o"), hashObject(t, "tcplife.bpfel.o"), hashObject(t, "match.bpfel.o")
	if Hash(a, b, c) != Hash(c, a, b, a) {
		t.Error("order or repetition of objects matters")
	}
	renamed := hashObject(t, "execsnoop.bpfel.o")
	renamed.name = "other"
	if Hash(renamed) != Hash(a) {
		t.Error("the name of an object matters")
	}
	seen := map[[32]byte]string{Hash(): "nothing"}
	for name, h := range map[string][32]byte{
		"a": Hash(a), "b": Hash(b), "c": Hash(c), "a, b": Hash(a, b), "b, c": Hash(b, c),
		"big-endian": Hash(hashObject(t, "execsnoop.bpfeb.o")),
	} {
		if other, ok := seen[h]; ok {
			t.Errorf("%s and %s have the same hash", name, other)
		}
		seen[h] = name
	}
	if Hash(hashObject(t, "norelo.bpfel.o")) != Hash() {
		t.Error("an object without relocations matters")
	}
}

// Types compared as a whole hash by content: other type IDs do not matter,
// what a comparison looks at does.
func TestHashOfTypes(t *testing.T) {
	// struct node { int <member>; struct node *next; struct far *far; }, after
	// some types without a reference.
	content := func(kind relo.Kind, before int, member, far string) string {
		b := btf.NewBuilder(binary.LittleEndian)
		for range before {
			b.Type("unused", btf.KindFloat, false, 0, 8)
		}
		id := uint32(before)
		b.Type("int", btf.KindInt, false, 0, 4)
		b.Word(btf.IntSigned<<24 | 32)
		b.Type("far", btf.KindStruct, false, 1, 4)
		b.Word(b.String(far), id+1, 0)
		b.Type("", btf.KindPtr, false, 0, id+5)
		b.Type("", btf.KindPtr, false, 0, id+2)
		root := b.Type("node", btf.KindStruct, false, 3, 24)
		b.Word(b.String(member), id+1, 0, b.String("next"), id+3, 64, b.String("far"), id+4, 128)
		btf, err := btf.New(b.Bytes(), nil)
		if err != nil {
			t.Fatal(err)
		}
		s := parseSpec(btf, kind, root, "0")
		if s.err != nil {
			t.Fatal(s.err)
		}
		return string(s.signature(&signer{btf: s.btf, end: limits.SignatureBytes}, []byte{byte(kind)}))
	}
	for _, kind := range []relo.Kind{relo.TypeMatches, relo.TypeExists} {
		want := content(kind, 0, "a", "x")
		if content(kind, 7, "a", "x") != want {
			t.Errorf("%s: type IDs matter", kind)
		}
		if got := content(kind, 0, "b", "x"); (got != want) != (kind == relo.TypeMatches) {
			t.Errorf("%s: the name of a member matters: %v", kind, got != want)
		}
		if got := content(kind, 0, "a", "y"); (got != want) != (kind == relo.TypeMatches) { // cilium/ebpf looks there
			t.Errorf("%s: a member behind a pointer matters: %v", kind, got != want)
		}
	}
	if content(relo.TypeMatches, 0, "a", "x") == content(relo.TypeExists, 0, "a", "x") {
		t.Error("the kind of the relocation does not matter")
	}
}
