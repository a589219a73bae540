// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/check/boot"
	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/report"
	"github.com/btfgen/btfgen/internal/testing/testinput"
)

// bootReport returns the text of check --boot --verbose about programs of one object, as package report writes it.
func bootReport(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(testinput.Path(t, "testdata", "bpf", "broken.bpfel.o"))
	if err != nil {
		t.Fatal(err)
	}
	o, err := rule.Parse(t.Context(), "a.o", data)
	if err != nil {
		t.Fatal(err)
	}
	verdicts := map[string]rule.Status{"no_guard": rule.Fails, "sound": rule.OK, "hoisted": rule.MayFail, "or_guard": rule.Guarded}
	rep := &verdict.Report{}
	for i := range o.Programs {
		name := o.ProgramName(i)
		s := verdicts[name]
		rep.Programs = append(rep.Programs, verdict.ProgramRow{Object: "a.o", Name: name, Load: []rule.Status{s}, Status: []rule.Status{max(s, rule.MayFail)}})
	}
	trial := boot.NewTrial(rep, nil, []*rule.Object{o})
	trial.Take(boot.Event{Kind: boot.Object})
	for i := range o.Programs {
		name := o.ProgramName(i)
		e := boot.Event{Kind: boot.Program, Name: name, Attach: boot.Attached, Alone: boot.Loads}
		switch name {
		case "no_guard":
			e = boot.Event{Kind: boot.Program, Name: name, Error: "no", Errno: 22, Log: "bad: insn"}
		case "too_late":
			e = boot.Event{Kind: boot.Program, Name: name, Error: "cannot be read"}
		}
		trial.Take(e)
	}
	var text bytes.Buffer
	b := report.NewBoot(&text, true)
	k := &boot.Kernel{Name: "debian/12/x86_64/6.1.0-1", Release: "6.1.0-1", Trial: trial}
	b.Begin(k)
	b.Object(trial.Rows)
	b.End(k)
	b.Sum()
	return text.String()
}

func TestParseReport(t *testing.T) {
	text := bootReport(t)
	kernel, programs, err := parseReport(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if kernel != "6.1.0-1" {
		t.Errorf("kernel %q", kernel)
	}
	got := make(map[string]program)
	for _, p := range programs {
		got[p.program] = p
	}
	for name, want := range map[string]program{
		"no_guard": {key{"a.o", "no_guard"}, "fails", boot.Fails, "bad: insn"},
		"sound":    {key{"a.o", "sound"}, "ok", boot.Loads, ""},
		"hoisted":  {key{"a.o", "hoisted"}, "may fail", boot.Loads, ""},
		"or_guard": {key{"a.o", "or_guard"}, "guarded", boot.Loads, ""},
		"too_late": {key{"a.o", "too_late"}, "ok", boot.NotTried, "cannot be read"},
	} {
		if got[name] != want {
			t.Errorf("%+v, want %+v", got[name], want)
		}
	}
	if _, _, err := parseReport("nothing"); err == nil {
		t.Error("a text without a table is taken")
	}
	if _, _, err := parseReport(text + text); err == nil {
		t.Error("a report on two kernels is taken")
	}
}

func TestCompare(t *testing.T) {
	programs := []program{
		{key{"a.o", "fine"}, "ok", boot.Loads, ""},
		{key{"a.o", "refused"}, "ok", boot.Loads, ""},
		{key{"a.o", "taken"}, "fails", boot.Fails, "no"},
		{key{"a.o", "vague"}, "may fail", boot.Fails, "no"},
		{key{"a.o", "untried"}, "fails", boot.NotTried, "x"},
		{key{"b.o", "whole"}, "fails", boot.Fails, "no"},
		{key{"b.o", "old_libbpf"}, "ok", boot.Loads, ""},
		{key{"b.o", "in_array"}, "ok", boot.Loads, ""},
		{key{"c.o", "lost"}, "ok", boot.Loads, ""},
	}
	loaded := `  0.o\tfine\t0\t\t
  0.o\trefused\t22\tlibbpf: prog 'refused': BPF program load failed: Invalid argument\nlibbpf: failed to load object '0.o'\t0: exit\nbad insn\nprocessed 1 insns
  0.o\ttaken\t0\t\t
  0.o\tvague\t22\tlibbpf: map 'm': failed to create\nlibbpf: failed to load object '0.o'\t
  0.o\tuntried\t0\t\t
  1.o\told_libbpf\t22\tlibbpf: prog 'old_libbpf': missing BPF prog type, check ELF section name 'netfilter'\nlibbpf: failed to load object '1.o'\t
  1.o\tin_array\t9\tlibbpf: map 'calls': failed to initialize slot [0] to prog 'other' fd=-2: -9\t
  1.o\t-\t22\tlibbpf: no such object\t
  load: exit status 0
`
	results, err := parseResults(loaded, [][]string{{"a.o", "same.o"}, {"b.o"}})
	if err != nil {
		t.Fatal(err)
	}
	if r := results[key{"same.o", "refused"}]; r.why() != "bad insn" {
		t.Errorf("%q", r.why())
	}
	newer := result{"13", "libbpf: x", `bad\n\nVerification failed: Policy\n\nReason:\n  The call is bad.\n\nSuggestion:\n  Do without it.`}
	if newer.why() != "The call is bad." {
		t.Errorf("%q", newer.why())
	}
	c := compare("6.1.0", programs, results, nil)
	var out bytes.Buffer
	c.print(&out, "6.1.0")
	want := `|6.1.0|real libbpf loads|1/1|0/0|0/0|0/1|0/0|2/1|
libbpf and --boot agree on 3 programs; libbpf did not try 3
WRONG OK: a.o: refused: libbpf: bad insn
WRONG FAILS: a.o: taken
WRONG FAILS: a.o: untried
JUDGES DIFFER: a.o: refused: libbpf: bad insn; --boot: loads
JUDGES DIFFER: a.o: taken; --boot: fails: no
not tried: b.o: old_libbpf: libbpf: prog 'old_libbpf': missing BPF prog type, check ELF section name 'netfilter'
not tried: b.o: in_array: libbpf: map 'calls': failed to initialize slot [0] to prog 'other' fd=-2: -9
not tried: c.o: lost: no result
`
	if out.String() != want || !c.bad() {
		t.Errorf("%s", &out)
	}

	list, err := parseKnown(`
# a comment
wrong ok | a.o | re* | 6.1.* | for a test
judges differ | a.o | * | * | for a test
wrong fails | * | * | * | for a test
`)
	if err != nil {
		t.Fatal(err)
	}
	c = compare("6.1.0", programs, results, list)
	if c.bad() || c.listed[wrongOK] != 1 || c.listed[wrongFails] != 2 || c.listed[differ] != 2 {
		t.Errorf("%+v", c)
	}
	if c = compare("6.12.0", programs, results, list); !c.bad() || len(c.new[wrongOK]) != 1 {
		t.Errorf("another kernel: %+v", c)
	}
	if c = compare("6.1.0", programs[7:], results, list); !c.bad() {
		t.Error("nothing was compared, and that is not bad")
	}
}

func TestKnown(t *testing.T) {
	if list, err := parseKnown(knownText); err != nil || len(list) == 0 {
		t.Errorf("known.txt: %d entries, %v", len(list), err)
	}
	for _, text := range []string{"wrong ok | a | b | c", "wrong ok | a | b | c | ", "odd | a | b | c | d", "wrong ok | [ | b | c | d"} {
		if list, err := parseKnown(text); err == nil || !strings.HasPrefix(err.Error(), "known.txt:1: ") {
			t.Errorf("%q: %v, %v", text, list, err)
		}
	}
}

func TestUnpack(t *testing.T) {
	dir, in := t.TempDir(), t.TempDir()
	object, err := os.ReadFile(testinput.Path(t, "testdata", "bpf", "nobtf.bpfel.o"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(testinput.Path(t, "testdata", "bpf", "norelo.bpfel.o"))
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for name, data := range map[string][]byte{"a.o": object, "b.o": other, "c.o": object, "script": []byte("#!/bin/sh\n")} {
		if err := os.WriteFile(filepath.Join(in, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a.o", "b.o", "c.o", "script"} {
		files = append(files, filepath.Join(in, name))
	}
	if err := unpack(dir, files); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, namesFile))
	if err != nil || string(got) != `[["a.o","c.o"],["b.o"]]` {
		t.Errorf("%s, %v", got, err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "1.o")); err != nil || !bytes.Equal(data, other) {
		t.Errorf("1.o: %v", err)
	}
}

func TestParseResults(t *testing.T) {
	for _, text := range []string{"", "no lines", `  9.o\tp\t0\t\t`, `  x\tp\t0\t\t`} {
		if r, err := parseResults(text, [][]string{{"a.o"}}); err == nil {
			t.Errorf("%q is taken: %v", text, r)
		}
	}
}
