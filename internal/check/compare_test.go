// SPDX-License-Identifier: Apache-2.0

package check

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
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
		"objects": [{"object": "x.o", "status": ["ok", "fails"], "headline": {"text": "not read"}}, {"object": "y.o", "status": ["fails", "may fail"]}],
		"programs": [
			{"object": "x.o", "program": "p", "section": "xdp", "status": ["fails", "fails"]},
			{"object": "y.o", "program": "q", "section": "xdp", "status": ["ok", "may fail"]},
			{"object": "y.o", "program": "r", "section": "xdp", "status": ["fails", "ok"]}]}`)
	if err != nil {
		t.Fatal(err)
	}
	rep := &Report{
		Kernels: []Kernel{{Name: "b"}, {Name: "a"}, {Name: "new"}},
		Programs: []Program{
			{Object: "x.o", Name: "p", Status: []Status{OK, MayFail, OK}}, {Object: "y.o", Name: "o", Status: []Status{Unknown, Unknown, OK}},
			{Object: "y.o", Name: "q", Section: "xdp", Status: []Status{Fails, Fails, OK}}, {Object: "z.o", Name: "s", Status: []Status{OK, Other, Fails}}},
		Objects: []ObjectRow{
			{Object: "x.o", Status: []Status{Guarded, MayFail, OK}, Decides: []Decider{{0, []int{1}}}},
			{Object: "y.o", Status: []Status{Fails, Fails, OK}, Decides: []Decider{{1, []int{0, 1}}, {2, []int{0, 1}}}},
			{Object: "z.o", Status: []Status{OK, Other, Fails}, Decides: []Decider{{3, []int{2}}}},
		},
	}
	want := []Change{
		{"x.o", "", "b", Fails, Guarded, false, false}, {"x.o", "p", "a", OK, MayFail, false, true},
		{"y.o", "q", "b", MayFail, Fails, false, false},
		{"z.o", "s", "new", OK, Fails, true, true},
	}
	if got := rep.CompareObjects(old, func(int) bool { return true }); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := rep.CompareObjects(old, func(k int) bool { return k == 1 }); !reflect.DeepEqual(got, want[1:2]) {
		t.Errorf("on one kernel: %v, want %v", got, want[1:2])
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
