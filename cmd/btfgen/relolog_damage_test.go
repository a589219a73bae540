// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/pkg/relo"
)

// editor changes records of an object's .BTF.ext in place.
type editor struct {
	*testing.T
	data    []byte
	strings []byte // strings of .BTF, aliases data
	records []byte // all records of the first section, aliases data
}

const recordLen = 16 // insn_off, type_id, access_str_off, kind

func newEditor(t *testing.T, path string) *editor {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	section := func(name string) []byte {
		s := f.Section(name)
		if s == nil {
			t.Fatalf("%s has no %s", path, name)
		}
		return data[s.Offset : s.Offset+s.Size]
	}
	u32 := func(b []byte, at int) int { return int(binary.LittleEndian.Uint32(b[at:])) }
	b, x := section(".BTF"), section(".BTF.ext")
	relos := x[u32(x, 4)+u32(x, 24):] // record size, section name, number of records
	if u32(relos, 0) != recordLen {
		t.Fatalf("records of %d bytes", u32(relos, 0))
	}
	return &editor{t, data, b[u32(b, 4)+u32(b, 12):], relos[12 : 12+u32(relos, 8)*recordLen]}
}

// set changes one word of a record.
func (e *editor) set(record, word int, v uint32) {
	binary.LittleEndian.PutUint32(e.records[record*recordLen+word*4:], v)
}

// text overwrites source lines with a string and returns its offset. Only line info refers to them.
func (e *editor) text(s string) uint32 {
	e.Helper()
	start, at := -1, 0
	for _, str := range bytes.SplitAfter(e.strings, []byte{0}) {
		if !bytes.ContainsAny(str, " ;") {
			start = -1
		} else if start < 0 {
			start = at
		}
		at += len(str)
		if start >= 0 && at-start > len(s) {
			copy(e.strings[start:], s+"\x00")
			return uint32(start)
		}
	}
	e.Fatal("no room for a string")
	return 0
}

// TestRelologDamaged makes records invalid. The log has each of them with the reason, and all others.
func TestRelologDamaged(t *testing.T) {
	btf := "../../testdata/vmlinux/debian/12/x86_64"
	path := "../../testdata/bpf/shapes.bpfel.o"
	whole := runJSON(t, btf, path)
	e := newEditor(t, path)
	e.set(0, 3, 99)
	e.set(1, 1, 1<<20)
	e.set(2, 2, e.text("0"+strings.Repeat(":0", 64)))
	e.set(3, 2, e.text("0:x"))
	e.set(4, 2, e.text("0:0:0:0:0:0:77"))
	damaged := filepath.Join(t.TempDir(), "shapes.bpfel.o")
	if err := os.WriteFile(damaged, e.data, 0o600); err != nil {
		t.Fatal(err)
	}
	log := runJSON(t, btf, damaged)
	if len(log) != len(whole) {
		t.Fatalf("%d records, of the whole object %d", len(log), len(whole))
	}
	for i, want := range []relo.Reason{
		{Cause: relo.CauseRelocation}, {Cause: relo.CauseNoType, LocalNumber: 1048576}, {Cause: relo.CauseLevels, LocalNumber: 64}, {Cause: relo.CauseAccess},
		{Cause: relo.CauseAccessKind, LocalNumber: 4, Name: "ptr"},
	} {
		want.Code = relo.InvalidRelocation
		if log[i].Result != relo.Error || *log[i].Reason != want {
			t.Errorf("record %d: %s: %s, want error: %s", i, log[i].Result, log[i].Reason, want)
		}
	}
	if log[0].Kind.String() != "unknown(99)" {
		t.Errorf("kind %s", log[0].Kind)
	}
	for i := 5; i < len(log); i++ {
		if log[i].Result != whole[i].Result || log[i].Kind != whole[i].Kind {
			t.Errorf("record %d: %s, in the whole object %s", i, log[i].Result, whole[i].Result)
		}
	}
}

func runJSON(t *testing.T, btf, object string) (all []relo.Entry) {
	t.Helper()
	var out, msgs bytes.Buffer
	if s := run(t.Context(), []string{"relolog", "--json", "--fail-on", "error,poisoned", "--btf", btf, object}, &out, &msgs); s != statusFindings {
		t.Fatalf("exit status %d: %s", s, &msgs)
	}
	for dec := json.NewDecoder(&out); dec.More(); {
		var e relo.Entry
		if err := dec.Decode(&e); err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}
