// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
)

func baseline(t *testing.T, text string) (*Baseline, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "old.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return ReadBaseline(t.Context(), path)
}

// TestCompareObjects compares objects' rows with an older report's: one that got worse and better, one that got
// worse, and a new one.
func TestCompareObjects(t *testing.T) {
	old, err := baseline(t, `{"version": 1, "kernels": [{"name": "a"}, {"name": "b"}],
		"objects": [{"object": "x.o", "status": ["ok", "fails"], "minima": [{"since": "not read"}]}, {"object": "y.o", "status": ["fails", "may fail"]}],
		"programs": [
			{"object": "x.o", "program": "p", "section": "xdp", "status": ["fails", "fails"]},
			{"object": "y.o", "program": "q", "section": "xdp", "status": ["ok", "may fail"]},
			{"object": "y.o", "program": "r", "section": "xdp", "status": ["fails", "ok"]}]}`)
	if err != nil {
		t.Fatal(err)
	}
	rep := &Report{
		Kernels: []Column{{Name: "b"}, {Name: "a"}, {Name: "new"}},
		Programs: []ProgramRow{
			{Object: "x.o", Name: "p", Status: []rule.Status{rule.OK, rule.MayFail, rule.OK}}, {Object: "y.o", Name: "o", Status: []rule.Status{rule.Unknown, rule.Unknown, rule.OK}},
			{Object: "y.o", Name: "q", Section: "xdp", Status: []rule.Status{rule.Fails, rule.Fails, rule.OK}}, {Object: "z.o", Name: "s", Status: []rule.Status{rule.OK, rule.Other, rule.Fails}}},
		Objects: []ObjectRow{
			{Object: "x.o", Status: []rule.Status{rule.Guarded, rule.MayFail, rule.OK}, Decides: []Decider{{0, []int{1}}}},
			{Object: "y.o", Status: []rule.Status{rule.Fails, rule.Fails, rule.OK}, Decides: []Decider{{1, []int{0, 1}}, {2, []int{0, 1}}}},
			{Object: "z.o", Status: []rule.Status{rule.OK, rule.Other, rule.Fails}, Decides: []Decider{{3, []int{2}}}},
		},
	}
	want := []Change{
		{"x.o", "", "b", rule.Fails, rule.Guarded, false, false}, {"x.o", "p", "a", rule.OK, rule.MayFail, false, true},
		{"y.o", "q", "b", rule.MayFail, rule.Fails, false, false},
		{"z.o", "s", "new", rule.OK, rule.Fails, true, true},
	}
	if got := rep.CompareObjects(old, func(int) bool { return true }); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := rep.CompareObjects(old, func(k int) bool { return k == 1 }); !reflect.DeepEqual(got, want[1:2]) {
		t.Errorf("on one kernel: %v, want %v", got, want[1:2])
	}
}

// TestLost compares a report with an older one about more kernels, machines, objects and programs.
func TestLost(t *testing.T) {
	old, err := baseline(t, `{"version": 1, "kernels": [{"name": "a"}, {"name": "b"}, {"name": "gone"}],
		"objects": [{"object": "x.o", "status": ["ok", "fails", "ok"]}, {"object": "y.o", "status": ["n/a", "n/a", "ok"]},
			{"object": "z.o", "status": ["n/a", "ok", "n/a"]}],
		"programs": [
			{"object": "x.o", "program": "p", "section": "xdp", "status": ["ok", "fails", "ok"]},
			{"object": "x.o", "program": "q", "section": "xdp", "status": ["fails", "ok", "ok"]},
			{"object": "z.o", "program": "q", "section": "xdp", "status": ["n/a", "ok", "n/a"]}]}`)
	if err != nil {
		t.Fatal(err)
	}
	rep := &Report{
		Kernels:  []Column{{Name: "a"}, {Name: "b"}, {Name: "new"}},
		Programs: []ProgramRow{{Object: "x.o", Name: "p", Section: "xdp", Status: []rule.Status{rule.OK, rule.Other, rule.Other}}},
		Objects:  []ObjectRow{{Object: "x.o", Status: []rule.Status{rule.OK, rule.Other, rule.Other}}},
	}
	all := func(string) bool { return true }
	want := []Lost{{Kernel: "gone"}, {Object: "x.o", Program: "q"}, {Object: "y.o"}, {Object: "z.o"}}
	if got := rep.Lost(old, all); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := rep.Lost(old, func(k string) bool { return k == "a" }); !slices.Equal(got, want[1:2]) {
		t.Errorf("with one kernel: %v, want %v", got, want[1:2])
	}
	for _, got := range [][]Change{rep.Compare(old), rep.CompareObjects(old, func(int) bool { return true })} {
		if len(got) != 1 || !got[0].Lost() || !got[0].Worse() || got[0].Better() || got[0].Kernel != "b" {
			t.Errorf("%+v, want the machine to be lost on b", got)
		}
	}
}

func TestBaselineDamaged(t *testing.T) {
	for text, want := range map[string]string{
		`{"version": 1, "kernels": [], "objects": [{"status": []}]}`:                                              "no name",
		`{"version": 1, "kernels": [], "objects": [{"object": "x.o", "status": ["ok"]}]}`:                         "x.o: 1 verdicts on 0 kernels",
		`{"version": 1, "kernels": [], "objects": [{"object": "x.o", "status": ["splendid"]}]}`:                   "splendid",
		`{"version": 1, "kernels": [], "objects": {}}`:                                                            "cannot unmarshal object",
		`{"version": 1, "kernels": [{"name": "a"}], "programs": [{"object": "x", "program": "p", "status": []}]}`: "p: 0 verdicts on 1 kernels",
	} {
		if _, err := baseline(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
