// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/pkg/relo"
)

func number[T any](v T) *T { return &v }

// field returns a spec of struct task_struct.pid.
func field(id uint32, module *string, offset uint32) relo.Spec {
	return relo.Spec{TypeID: id, Type: "struct task_struct", Module: module, Raw: "0:1", Path: "pid", Offset: &offset}
}

// copies returns an entry with n equal candidates and one that does not match.
func copies(n int, kernel string, offset uint32) relo.Entry {
	vmlinux := ""
	e := relo.Entry{
		Object: "a.o", Program: "f", Section: "kprobe", Insn: 3, Source: "a.c:7", Kind: relo.ByteOffset, Kernel: kernel,
		Local: field(5, nil, 8), Old: 8, New: number(uint64(offset)), Result: relo.Resolved,
	}
	for i := range n {
		c := relo.Candidate{Spec: field(uint32(100+i), &vmlinux, offset), Match: true, Value: number(uint64(offset))}
		e.Candidates = append(e.Candidates, c)
	}
	e.Target = &e.Candidates[0].Spec
	miss := relo.Candidate{Spec: relo.Spec{TypeID: 99, Type: "struct task_struct", Module: &vmlinux}, Reason: &relo.Reason{Code: relo.CandidateMember, Name: "pid"}}
	e.Candidates = append(e.Candidates, miss)
	return e
}

// printLog prints a log. Entries are valid until the next.
func printLog(p *Printer, l *relo.Log) error {
	return p.Print(l.Object, l.Kernel, func(yield func(*relo.Entry) bool) {
		var e relo.Entry
		for i := range l.Entries {
			if e = l.Entries[i]; !yield(&e) {
				return
			}
		}
	})
}

// write writes one log.
func write(w io.Writer, l *relo.Log, o Options) error {
	p := NewPrinter(w, o)
	return errors.Join(printLog(p, l), p.Close())
}

// TestFold keeps the log of undeduplicated BTF readable.
func TestFold(t *testing.T) {
	l := &relo.Log{Object: "a.o", Kernel: "k", Entries: []relo.Entry{copies(476, "k", 16)}}
	var b bytes.Buffer
	if err := write(&b, l, Options{Verbose: true}); err != nil {
		t.Fatal(err)
	}
	want := `a.o on k: 1 resolved
  f (kprobe)
    #0  insn 3  <byte_off>  [5] struct task_struct.pid (0:1 @ offset 8)  → [100] struct task_struct.pid (0:1 @ offset 16) × 476  8 → 16  resolved
        source        a.c:7
        matching      [100] struct task_struct.pid (0:1 @ offset 16) = 16 × 476
        non-matching  [99] struct task_struct: no member pid [candidate-member]
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Error(d)
	}
}

// TestLines holds that what is encoded once for many entries makes the lines that each makes alone, whatever is forgotten meanwhile.
func TestLines(t *testing.T) {
	first, second := copies(3, "k", 16), copies(2, "k", 24)
	absent := relo.Entry{Object: "a.o", Kernel: "k", Kind: relo.FieldExists, Local: first.Local, Candidates: first.Candidates, Result: relo.Absent}
	poisoned := absent
	poisoned.Result, poisoned.Reason = relo.Poisoned, &relo.Reason{Code: relo.CandidateMember, Name: "\u202e"}
	again := poisoned
	again.Reason = &relo.Reason{Code: "another"}
	other := first
	other.New = number(*first.New)
	log := &relo.Log{Kernel: "k"}
	for i := range 40 {
		e := []relo.Entry{first, second, absent, poisoned, again, other}[i*(i/6+1)%6]
		e.Index, e.Insn, e.Program = i, 7*i, []string{"f", `x","local":{`, "\x7f", ""}[i%4]
		if i%7 == 0 {
			e.Kind, e.Source = relo.ByteSize, ""
		}
		log.Entries = append(log.Entries, e)
	}
	var want bytes.Buffer
	enc := escape.JSON(&want)
	for i := range log.Entries {
		if err := enc.Encode(&log.Entries[i]); err != nil {
			t.Fatal(err)
		}
	}
	for _, room := range []int{0, 1000, endsRoom} {
		var got bytes.Buffer
		p := NewJSONPrinter(&got, Filter{})
		p.json.room = room
		for range 2 {
			got.Reset()
			if err := printLog(p, log); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want.String(), got.String()); d != "" {
				t.Errorf("room for %d bytes: %s", room, d)
			}
		}
	}
}

// TestColor colours the result and nothing else.
func TestColor(t *testing.T) {
	l := &relo.Log{Object: "a.o", Kernel: "k", Entries: []relo.Entry{copies(1, "k", 16)}}
	var plain, colored bytes.Buffer
	if err := write(&plain, l, Options{}); err != nil {
		t.Fatal(err)
	}
	if err := write(&colored, l, Options{Color: true}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(colored.String(), "\x1b[32mresolved\x1b[") {
		t.Errorf("not green: %q", &colored)
	}
	if strings.Contains(plain.String(), "\x1b") {
		t.Errorf("not plain: %q", &plain)
	}
}

func TestComparison(t *testing.T) {
	var b bytes.Buffer
	p := NewPrinter(&b, Options{})
	for _, k := range []struct {
		name   string
		offset uint32
	}{{"one", 16}, {"two", 16}, {"three", 24}, {"four", 16}} {
		same := copies(1, k.name, 16)
		same.Index, same.Kind, same.New = 1, relo.FieldExists, number(uint64(1))
		if err := printLog(p, &relo.Log{Object: "a.o", Kernel: k.name, Entries: []relo.Entry{copies(1, k.name, k.offset), same}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	want := `[1] one
[2] two
[3] three
[4] four
a.o on 4 kernels: 1 relocations differ, 1 are the same
  different:
    f (kprobe)
      #0  insn 3  <byte_off>  [5] struct task_struct.pid (0:1 @ offset 8)
          [1-2 4]  → struct task_struct.pid  8 → 16  resolved
          [3]      → struct task_struct.pid  8 → 24  resolved
  the same:
    f (kprobe)
      #1  insn 3  <field_exists>  [5] struct task_struct.pid (0:1 @ offset 8)  → struct task_struct.pid  8 → 1  resolved
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Error(d)
	}
}

func TestFilter(t *testing.T) {
	e := relo.Entry{
		Program: "handle_exit", Section: "tracepoint/syscalls/sys_exit_open", Result: relo.Poisoned,
		Local: relo.Spec{Type: "struct task_struct___old"},
	}
	number := relo.Entry{Section: ".text", Result: relo.Resolved, Local: relo.Spec{Type: "u64"}}
	for _, tt := range []struct {
		name         string
		f            Filter
		e, otherwise bool
	}{
		{"all", Filter{}, true, true},
		{"function", Filter{Programs: []string{"handle_exit"}}, true, false},
		{"section", Filter{Programs: []string{".text", "nothing"}}, false, true},
		{"slash", Filter{Programs: []string{"tracepoint/*"}}, true, false},
		{"result", Filter{Results: []relo.Result{relo.Absent, relo.Poisoned}}, true, false},
		{"type", Filter{Types: []string{"struct task_struct___old"}}, true, false},
		{"flavor", Filter{Types: []string{"task_struct"}}, true, false},
		{"plain", Filter{Types: []string{"u64"}}, false, true},
		{"pattern", Filter{Types: []string{"u[0-9]*"}}, false, true},
		{"both", Filter{Types: []string{"task_*"}, Results: []relo.Result{relo.Resolved}}, false, false},
	} {
		if tt.f.Match(&e) != tt.e || tt.f.Match(&number) != tt.otherwise {
			t.Errorf("%s: %v, %v, want %v, %v", tt.name, tt.f.Match(&e), tt.f.Match(&number), tt.e, tt.otherwise)
		}
	}
}

func TestSpec(t *testing.T) {
	vmlinux, module := "", "nf_conntrack"
	for _, tt := range []struct {
		kind relo.Kind
		s    relo.Spec
		want string
	}{
		{relo.ByteOffset, field(7, nil, 20), "[7] struct task_struct.pid (0:1 @ offset 20)"},
		{relo.ByteOffset, field(7, &vmlinux, 20), "[7] struct task_struct.pid (0:1 @ offset 20)"},
		{relo.ByteOffset, field(7, &module, 20), "[7] struct task_struct.pid (0:1 @ offset 20) [nf_conntrack]"},
		{relo.Signed, relo.Spec{TypeID: 7, Type: "struct s", Raw: "0:1", Path: "b", Offset: number(uint32(2)), BitOffset: number(uint32(19))},
			"[7] struct s.b (0:1 @ offset 2.3)"},
		{relo.ByteOffset, relo.Spec{TypeID: 7, Type: "struct s", Raw: "2:0", Path: "[2].a", Offset: number(uint32(16))},
			"[7] struct s[2].a (2:0 @ offset 16)"},
		{relo.EnumvalValue, relo.Spec{TypeID: 7, Type: "enum e", Raw: "1", Path: "E_ONE"}, "[7] enum e::E_ONE"},
		{relo.TypeSize, relo.Spec{TypeID: 7, Type: "u64", Raw: "0"}, "[7] u64"},
	} {
		if got := Spec(tt.kind, &tt.s); got != tt.want {
			t.Errorf("%s, want %s", got, tt.want)
		}
	}
}

// TestUnsigned writes the largest enumerators of enums with a sign and without, of 32 and 64 bits.
func TestUnsigned(t *testing.T) {
	const types = `
		enum e 4: E 0xffffffff
		enum s 4 signed: S 0xffffffff
		enum64 f 8: F 0xffffffffffffffff
		enum64 g 8 signed: G 0xffffffffffffffff
		typedef h e`
	const asks = "program p\nenumval_value e::E\nenumval_value s::S\nenumval_value f::F\nenumval_value g::G"
	const all = uint64(1<<64 - 1)
	o, err := core.ParseObject("o", testbtf.Object(t, binary.LittleEndian, types, asks, all, all, all, all))
	if err != nil {
		t.Fatal(err)
	}
	target, err := testinput.NewKernel("k", testbtf.Types(t, binary.LittleEndian, types))
	if err != nil {
		t.Fatal(err)
	}
	log, err := core.NewSet(o).Run(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := write(&b, log, Options{Verbose: true}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"4294967295 → 4294967295", "E = 4294967295\n", "-1 → -1", "S = -1\n",
		"18446744073709551615 → 18446744073709551615", "F = 18446744073709551615\n", "-1 → -1", "G = -1\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, &b)
		}
	}
}

// TestOneLine holds that every relocation of every object takes one line.
func TestOneLine(t *testing.T) {
	k := testinput.Kernels(t, "x86_64/6.1.0-47-amd64")[0]
	target, err := testinput.NewKernel(k.Name, k.BTF)
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, o := range testinput.Objects(t) {
		if o.Order() != target.Order() {
			continue
		}
		l, err := core.NewSet(o.Object).Run(t.Context(), target)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := write(&b, l, Options{}); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(b.String(), "\n    #"); n != len(l.Entries) {
			t.Errorf("%s: %d lines for %d relocations", o.Name(), n, len(l.Entries))
		}
		lines += len(l.Entries)
	}
	if lines == 0 {
		t.Error("no relocations")
	}
}
