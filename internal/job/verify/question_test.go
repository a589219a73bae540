// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"

	own "github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/internal/testing/testinput"
)

// groupOf returns the number of the only group of an object.
func groupOf(t *testing.T, q questions, n int, order binary.ByteOrder, local, asks string) int {
	t.Helper()
	data := testbtf.Object(t, order, local, "program p\n"+asks)
	o, err := core.ParseObject(fmt.Sprint(n), data)
	if err != nil {
		t.Fatal(err)
	}
	c := readCilium(t.Context(), o, data)
	if len(c.groups) != 1 {
		t.Fatalf("%d groups, %s", len(c.groups), c.note)
	}
	q.number(n, o, c)
	return c.groups[0].question
}

// TestQuestions checks that groups of objects have one number only if their local types, relocations and byte orders are equal.
func TestQuestions(t *testing.T) {
	const (
		local = "struct in 8: x u32 0, y u32 4\nstruct req 24: a u32 0, b in 4, c *in 16"
		asks  = "byte_off struct req.a\nbyte_off struct req.b.y"
	)
	q := make(questions)
	first := groupOf(t, q, 0, binary.LittleEndian, local, asks)
	for n, c := range []struct {
		name, local, asks string
		order             binary.ByteOrder
		equal             bool
	}{
		{name: "the same with other IDs", local: "struct other 4: z u32 0\n" + local, equal: true},
		{name: "what a pointer leads to", local: "struct far 8: x u32 0\nstruct in 8: x u32 0, y u32 4\nstruct req 24: a u32 0, b in 4, c *far 16", equal: true},
		{name: "byte order", order: binary.BigEndian},
		{name: "name", local: "struct in 8: x u32 0, y u32 4\nstruct req___v2 24: a u32 0, b in 4, c *in 16", asks: "byte_off struct req___v2.a\nbyte_off struct req___v2.b.y"},
		{name: "size", local: "struct in 8: x u32 0, y u32 4\nstruct req 32: a u32 0, b in 4, c *in 16"},
		{name: "offset", local: "struct in 8: x u32 0, y u32 4\nstruct req 24: a u32 0, b in 8, c *in 16"},
		{name: "name in a member", local: "struct in 8: z u32 0, y u32 4\nstruct req 24: a u32 0, b in 4, c *in 16"},
		{name: "type of a member", local: "struct in 8: x u64 0, y u32 4\nstruct req 24: a u32 0, b in 4, c *in 16"},
		{name: "a relocation less", asks: "byte_off struct req.a"},
		{name: "one twice", asks: asks + "\nbyte_off struct req.a"},
		{name: "kind", asks: "byte_off struct req.a\nfield_exists struct req.b.y"},
		{name: "path", asks: "byte_off struct req.a\nbyte_off struct req.b.x"},
	} {
		if c.local == "" {
			c.local = local
		}
		if c.asks == "" {
			c.asks = asks
		}
		if c.order == nil {
			c.order = binary.LittleEndian
		}
		if got := groupOf(t, q, n+1, c.order, c.local, c.asks); (got == first) != c.equal {
			t.Errorf("%s: number %d, that of the first is %d", c.name, got, first)
		}
	}
}

// TestQuestionsPointees checks that what pointers lead to counts if a relocation is about a type.
func TestQuestionsPointees(t *testing.T) {
	q := make(questions)
	seen := make(map[int]string)
	for n, local := range []string{"struct in 8: x u32 0\nstruct req 8: c *in 0", "struct in 8: y u32 0\nstruct req 8: c *in 0"} {
		got := groupOf(t, q, n, binary.LittleEndian, local, "type_matches struct req")
		if other, ok := seen[got]; ok {
			t.Errorf("%q and %q have one number", other, local)
		}
		seen[got] = local
	}
}

// TestQuestionsDiffer checks that each of two equal objects has its own differences.
func TestQuestionsDiffer(t *testing.T) {
	full := testinput.Kernels(t, "6.1.0-47-amd64")[0].BTF
	exec := object(t, "execsnoop.bpfel.o")
	again := Object{Object: exec.Named("again"), Data: exec.Data}
	bad := change(t, minimized(t, full, exec), func(types []btf.Type) { findStructs(t, types, "task_struct")[0].Members[0].Offset += 64 })
	path := filepath.Join(t.TempDir(), "kernel.btf")
	if err := os.WriteFile(path, full, 0o600); err != nil {
		t.Fatal(err)
	}
	count := make(map[string]int)
	for _, k := range verifyOne(t, path, bad, exec, again).Kernels {
		for _, d := range k.Differences {
			if d.Loader == Cilium {
				count[d.Object]++
			}
		}
	}
	if n := count["again"]; n == 0 || n != count[exec.Name()] {
		t.Errorf("%v", count)
	}
}

// TestQuestionsBound checks that the hash of a local type takes little memory if many of its members have one long name.
func TestQuestionsBound(t *testing.T) {
	b := own.NewBuilder(binary.LittleEndian)
	const members = 1 << 16
	b.Type("s", own.KindStruct, false, members, 0)
	for range members {
		b.Word(b.String(strings.Repeat("x", limits.NameBytes)), 0, 0)
	}
	view, err := own.New(b.Bytes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	l := sums{btf: view, left: limits.SignatureBytes, made: make(map[contents][sha256.Size]byte)}
	l.of(contents{id: 1})
	if n := cap(l.b); n > 4*limits.SignatureBytes {
		t.Errorf("%d bytes", n)
	}
}
