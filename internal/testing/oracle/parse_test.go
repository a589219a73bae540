// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTranscripts prints the result of parsing each transcript in libbpf's format and
// compares it with the transcript.
func TestTranscripts(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d transcripts, error %v", len(paths), err)
	}
	kinds := map[string]bool{}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			res := Parse(string(data))
			checkAll(t, res, string(data))
			for _, r := range res.Records {
				kinds[r.Kind] = true
			}
		})
	}
	for _, k := range strings.Fields("byte_off byte_sz field_exists signed lshift_u64 rshift_u64 local_type_id " +
		"target_type_id type_exists type_matches type_size enumval_exists enumval_value") {
		if !kinds[k] {
			t.Errorf("no transcript has a relocation of kind %s", k)
		}
	}
}

// checkAll compares res with the log it was parsed from.
func checkAll(t *testing.T, res *Result, log string) {
	t.Helper()
	if len(res.Other) > 0 {
		t.Errorf("%d lines not understood, the first: %q", len(res.Other), res.Other[0])
	}
	var want, aside []string
	log = strings.ReplaceAll(log, "not foundError: ", "not found\nError: ")
	for line := range strings.Lines(log) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "libbpf: prog ") || strings.HasPrefix(line, "libbpf: CO-RE ") {
			want = append(want, line)
		} else if line != "" {
			aside = append(aside, line)
		}
	}
	if d := cmp.Diff(want, render(res)); d != "" {
		t.Errorf("relocations (-bpftool +parsed):\n%s", d)
	}
	var got []string
	for _, w := range res.Warnings {
		got = append(got, "libbpf: "+w)
	}
	for _, f := range split(res.Failure) {
		got = append(got, "Error: "+f)
	}
	if d := cmp.Diff(aside, got); d != "" {
		t.Errorf("other lines (-bpftool +parsed):\n%s", d)
	}
}

var early = regexp.MustCompile(`^relo for \[`)
var unnumbered = regexp.MustCompile(`^relo (for \[|\d+ at insn #)`)

// render prints the relocations of res as libbpf does.
func render(res *Result) []string {
	var lines []string
	found := res.Found
	for i, r := range res.Records {
		for ; len(found) > 0 && found[0].Record == i; found = found[1:] {
			lines = append(lines, found[0].render())
		}
		lines = append(lines, r.render()...)
	}
	for _, f := range found {
		lines = append(lines, f.render())
	}
	return lines
}

func (f Found) render() string {
	return fmt.Sprintf("libbpf: CO-RE relocating %s: found target candidate %s in [%s]", f.Local, f.Target, f.Module)
}

func (r Record) render() []string {
	var lines []string
	add := func(format string, args ...any) {
		lines = append(lines, fmt.Sprintf("libbpf: prog '%s': relo #%d: ", r.Program, r.Index)+fmt.Sprintf(format, args...))
	}
	fails := func(before bool) {
		for _, e := range split(r.Err) {
			switch {
			case early.MatchString(e) != before:
			case unnumbered.MatchString(e):
				lines = append(lines, fmt.Sprintf("libbpf: prog '%s': %s", r.Program, e))
			default:
				add("%s", e)
			}
		}
	}
	fails(true)
	if r.Kind != "" {
		add("<%s> %s", r.Kind, r.Local)
	}
	for _, c := range r.Candidates {
		verb := "matching"
		if !c.Match {
			verb = "non-matching"
		}
		add("%s candidate #%d <%s> %s", verb, c.Index, r.Kind, c.Spec)
	}
	if r.NoMatch {
		add("no matching targets found")
	}
	fails(false)
	return lines
}

func split(joined string) []string {
	if joined == "" {
		return nil
	}
	return strings.Split(joined, "; ")
}

func TestParseRecord(t *testing.T) {
	const prog = "libbpf: prog 'kprobe/f': relo #3: "
	long := strings.Repeat("n", 300)
	cut := func(s string) string { return s[:specRoom] }
	tests := []struct {
		name string
		log  []string
		want Record
	}{
		{"bitfield",
			[]string{
				"<lshift_u64> [77] struct inet_sock.freebind (0:14 @ offset 792.2)",
				"matching candidate #2 <lshift_u64> [14295] struct inet_sock.freebind (0:14 @ offset 810)",
			},
			Record{Kind: "lshift_u64",
				Local: Spec{TypeID: 77, TypeKind: "struct", TypeName: "inet_sock", Path: ".freebind", Raw: "0:14", Offset: "792.2"},
				Candidates: []Candidate{{Match: true, Index: 2,
					Spec: Spec{TypeID: 14295, TypeKind: "struct", TypeName: "inet_sock", Path: ".freebind", Raw: "0:14", Offset: "810"}}}}},
		{"path",
			[]string{
				"<byte_off> [2] union <anon>[1].mm.pgd[3] (1:0:3 @ offset 8)",
				"non-matching candidate #0 <byte_off> [5] union <anon> ( @ offset 0)",
				"no matching targets found",
			},
			Record{Kind: "byte_off", NoMatch: true,
				Local: Spec{TypeID: 2, TypeKind: "union", TypeName: "<anon>", Path: "[1].mm.pgd[3]", Raw: "1:0:3", Offset: "8"},
				Candidates: []Candidate{{
					Spec: Spec{TypeID: 5, TypeKind: "union", TypeName: "<anon>", Offset: "0"}}}}},
		{"type",
			[]string{
				"<target_type_id> [25] int unsigned long",
				"matching candidate #0 <target_type_id> [22] int unsigned long",
			},
			Record{Kind: "target_type_id",
				Local: Spec{TypeID: 25, TypeKind: "int", TypeName: "unsigned long"},
				Candidates: []Candidate{{Match: true,
					Spec: Spec{TypeID: 22, TypeKind: "int", TypeName: "unsigned long"}}}}},
		{"enum value",
			[]string{
				"<enumval_value> [4] enum64 ns::state::BUSY = -7",
				"matching candidate #0 <enumval_value> [9] enum state::BUSY = 8",
			},
			Record{Kind: "enumval_value",
				Local: Spec{TypeID: 4, TypeKind: "enum64", TypeName: "ns::state", Path: "::BUSY = -7"},
				Candidates: []Candidate{{Match: true,
					Spec: Spec{TypeID: 9, TypeKind: "enum", TypeName: "state", Path: "::BUSY = 8"}}}}},
		{"ambiguity",
			[]string{"<type_size> [5] struct root", "relocation decision ambiguity: success 64 != success 48"},
			Record{Kind: "type_size", Local: Spec{TypeID: 5, TypeKind: "struct", TypeName: "root"},
				Err: "relocation decision ambiguity: success 64 != success 48"}},
		{"candidate error",
			[]string{"<byte_off> [5] struct d.x (0:0 @ offset 0)", "error matching candidate #1 <byte_off> [2] struct d (0 @ offset 0): -7\n "},
			Record{Kind: "byte_off", Local: Spec{TypeID: 5, TypeKind: "struct", TypeName: "d", Path: ".x", Raw: "0:0", Offset: "0"},
				Err: "error matching candidate #1 <byte_off> [2] struct d (0 @ offset 0): -7"}},
		{"parse failure",
			[]string{"parsing [2] struct root + 0:0:1:9 failed: -22"},
			Record{Local: Spec{TypeID: 2, TypeKind: "struct", TypeName: "root", Raw: "0:0:1:9"},
				Err: "parsing [2] struct root + 0:0:1:9 failed: -22"}},
		{"libbpf 0.7",
			[]string{
				"kind <byte_off> (0), spec is [2] struct s.a[1] (0:3:1 @ offset 12)",
				"matching candidate #0 [7] struct s.a[1] (0:4:1 @ offset 16)",
			},
			Record{Kind: "byte_off",
				Local: Spec{TypeID: 2, TypeKind: "struct", TypeName: "s", Path: ".a[1]", Raw: "0:3:1", Offset: "12"},
				Candidates: []Candidate{{Match: true,
					Spec: Spec{TypeID: 7, TypeKind: "struct", TypeName: "s", Path: ".a[1]", Raw: "0:4:1", Offset: "16"}}}}},
		{"truncated",
			[]string{cut("<byte_off> [2] struct s." + long), "matching candidate #0 " + cut("<byte_off> [3] struct "+long)},
			Record{Kind: "byte_off",
				Local: Spec{TypeID: 2, TypeKind: "struct", TypeName: "s", Path: "." + long[:specRoom-len("<byte_off> [2] struct s.")], Truncated: true},
				Candidates: []Candidate{{Match: true,
					Spec: Spec{TypeID: 3, TypeKind: "struct", TypeName: long[:specRoom-len("<byte_off> [3] struct ")], Truncated: true}}}}},
		{"truncated enum value",
			[]string{cut("<enumval_value> [2] enum " + long)},
			Record{Kind: "enumval_value",
				Local: Spec{TypeID: 2, TypeKind: "enum", TypeName: long[:specRoom-len("<enumval_value> [2] enum ")], Truncated: true}}},
		{"truncated type",
			[]string{cut("<type_exists> [2] struct " + long)},
			Record{Kind: "type_exists",
				Local: Spec{TypeID: 2, TypeKind: "struct", TypeName: long[:specRoom-len("<type_exists> [2] struct ")], Truncated: true}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.want.Program, tt.want.Index = "kprobe/f", 3
			res := Parse(prog + strings.Join(tt.log, "\n"+prog) + "\n")
			if d := cmp.Diff(&Result{Records: []Record{tt.want}}, res); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestParseAside(t *testing.T) {
	res := Parse(strings.Join([]string{
		"libbpf: CO-RE relocating [2] struct root: found target candidate [9] struct root___2 in [ext4]",
		"libbpf: prog 'a b': relo #0: <byte_off> [2] struct root.x (0:0 @ offset 0)",
		"libbpf: prog 'a b': relo 0 at insn #7 can't be satisfied for bitfield",
		"libbpf: unexpected kind float relocated, local [6], target [2]",
		"libbpf: prog 'a b': relo for [2] :9 (at idx 3) captures type [4] of unexpected kind int",
		"libbpf: prog 'a b': relo #1: parsing [2] struct root + 0:9 failed: -22",
		"libbpf: BTF.ext header not foundError: one",
		"Error: two",
	}, "\n"))
	want := &Result{
		Found: []Found{{
			Local: Spec{TypeID: 2, TypeKind: "struct", TypeName: "root"}, Module: "ext4",
			Target: Spec{TypeID: 9, TypeKind: "struct", TypeName: "root___2"},
		}},
		Records: []Record{
			{Program: "a b", Kind: "byte_off",
				Local: Spec{TypeID: 2, TypeKind: "struct", TypeName: "root", Path: ".x", Raw: "0:0", Offset: "0"},
				Err:   "relo 0 at insn #7 can't be satisfied for bitfield"},
			{Program: "a b", Index: 1, Local: Spec{TypeID: 2, TypeKind: "struct", TypeName: "root", Raw: "0:9"},
				Err: "relo for [2] :9 (at idx 3) captures type [4] of unexpected kind int; parsing [2] struct root + 0:9 failed: -22"},
		},
		Warnings: []string{"unexpected kind float relocated, local [6], target [2]", "BTF.ext header not found"},
		Failure:  "one; two",
	}
	if d := cmp.Diff(want, res); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// An unknown line that resembles one of a relocation must be reported.
func TestParseOther(t *testing.T) {
	const local = "libbpf: prog 'p': relo #0: <byte_off> [2] struct s.x (0:0 @ offset 0)\n"
	for _, line := range []string{
		"usage: bpftool",
		"libbpf: prog 'p': something new",
		"libbpf: prog 'p': relo #0: something new",
		"libbpf: prog 'p': relo #1: matching candidate #0 <byte_off> [2] struct s.x (0:0 @ offset 0)",
		"libbpf: prog 'q': relo #0: no matching targets found",
		"libbpf: prog 'q': relo 0 at insn #7 can't be satisfied for bitfield",
		"libbpf: prog 'p': relo for [2] 9 (at idx 3) captures type [4] of unexpected kind int",
		"libbpf: prog 'p': relo #99999999999999999999: no matching targets found",
		"libbpf: prog 'p': relo #1: <byte_off> [2] struct s.x",
		"libbpf: prog 'p': relo #1: <byte_off> [4294967296] struct s.x (0:0 @ offset 0)",
		"libbpf: prog 'p': relo #1: <enumval_value> [2] enum s",
		"libbpf: prog 'p': relo #1: <unknown> [2] struct s",
		"libbpf: prog 'p': relo #0: matching candidate #99999999999999999999 <byte_off> [2] struct s.x (0:0 @ offset 0)",
		"libbpf: CO-RE relocating [2] struct: found target candidate [3] struct s in [vmlinux]",
	} {
		res := Parse(local + line + "\n")
		if len(res.Other) != 1 || !strings.HasSuffix(line, res.Other[0]) {
			t.Errorf("%q: not understood: %q", line, res.Other)
		}
	}
}
