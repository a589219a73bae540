// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"cmp"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
)

// report returns a report on an object, with the same verdicts for all its programs.
func report(t *testing.T, load, all rule.Status) (*verdict.Report, []*rule.Object) {
	t.Helper()
	data, err := os.ReadFile("../../../testdata/bpf/biolat.bpfel.o")
	if err != nil {
		t.Fatal(err)
	}
	o, err := rule.Parse(t.Context(), "biolat", data)
	if err != nil {
		t.Fatal(err)
	}
	rep := new(verdict.Report)
	for i := range o.Programs {
		rep.Programs = append(rep.Programs, verdict.ProgramRow{
			Object: "biolat", Name: o.Funcs[o.Programs[i].Fn].Name, Load: []rule.Status{load}, Status: []rule.Status{all},
		})
	}
	return rep, []*rule.Object{o}
}

func TestTrial(t *testing.T) {
	refused := Event{Error: "program p: load program: no", Errno: 22, Log: "0: (b7)\ninvalid func unknown#195896080\nprocessed 1 insns", Alone: "load program: no"}
	for _, tt := range []struct {
		name       string
		load, all  rule.Status
		got        *Event // nil for none
		object     string // error in the event about the whole object
		loads      bool
		wrong      string
		alone      string
		untold     bool
		unread     string
		wantReason string
		ebpfGo     rule.Status
	}{
		{name: "loads", got: &Event{Alone: "loads"}, loads: true},
		{name: "refused", got: &refused, wrong: "was to load, but does not", wantReason: "reaches an unresolved relocation"},
		{name: "refused, guarded", load: rule.Guarded, got: &refused, wrong: "was to load, but does not"},
		{name: "refused, as predicted", load: rule.Fails, all: rule.Fails, got: &refused, ebpfGo: rule.MayFail},
		{name: "refused, perhaps", load: rule.MayFail, all: rule.MayFail, got: &refused, ebpfGo: rule.MayFail},
		{name: "was to fail", load: rule.Fails, all: rule.Fails, got: &Event{Alone: "loads"}, loads: true, wrong: "was to fail, but loads"},
		{name: "not attached", got: &Event{Alone: "loads", Attach: "not attached: why"}, loads: true, wrong: "was to attach, but does not"},
		{name: "attached", all: rule.Fails, got: &Event{Alone: "loads", Attach: Attached}, loads: true, wrong: "was not to attach, but does"},
		{name: "not attached, perhaps", all: rule.MayFail, got: &Event{Alone: "loads", Attach: "not attached: why"}, loads: true},
		{name: "nothing came", untold: true},
		{name: "the library does not read it", got: &Event{Error: "odd section", Alone: "odd section"}, untold: true, ebpfGo: rule.MayFail},
		{name: "the library does not load it", got: &Event{Alone: "bad"}, loads: true, alone: "bad", wrong: "was to load with ebpf-go, but does not"},
		{name: "the library does not load it, as predicted", got: &Event{Alone: "bad"}, loads: true, alone: "bad", ebpfGo: rule.Fails},
		{name: "the library loads it", got: &Event{Alone: "loads"}, loads: true, ebpfGo: rule.Fails, wrong: "was to fail with ebpf-go, but loads"},
		{name: "only the library loads it", load: rule.Fails, all: rule.Fails, got: &Event{Error: "ambiguous", Errno: 22, Alone: "loads"}, alone: "loads"},
		{name: "the library does not read the object", got: &Event{}, loads: true, unread: "weak", ebpfGo: rule.MayFail},
		{name: "nor loads it libbpf", load: rule.Fails, all: rule.Fails, got: &Event{Error: "no", Errno: 22}, unread: "weak", ebpfGo: rule.MayFail},
		{name: "a map of the object", got: &Event{Alone: "loads"}, object: "map x: too large", alone: "loads", wrong: "was to load, but does not", wantReason: "map x: too large"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rep, objects := report(t, tt.load, tt.all)
			other, _ := report(t, tt.ebpfGo, tt.ebpfGo)
			p := &rep.Programs[0]
			trial := NewTrial(rep, other, objects)
			for _, e := range []Event{{Kind: Program, Object: 7, Name: p.Name}, {Kind: Program, Name: "other"}, {Kind: Object, Object: -1, Error: "x"}} {
				trial.Take(e) // the event is not about a program
			}
			if tt.object != "" {
				trial.Take(Event{Kind: Object, Error: tt.object, Errno: 7})
			}
			trial.Take(Event{Kind: Object, Alone: tt.unread})
			if tt.got != nil {
				e := *tt.got
				e.Kind, e.Name = Program, p.Name
				trial.Take(e)
			}
			r := &trial.Of(0)[0]
			a := r.Actual()
			if got := a.Outcome == Loads; got != tt.loads {
				t.Errorf("loads: %t", got)
			}
			if r.Wrong() != tt.wrong || a.EbpfGo != cmp.Or(tt.alone, tt.unread) || (a.Outcome == NotTried) != tt.untold || r.Unread != tt.unread {
				t.Errorf("wrong %q, alone %q, untold %t, unread %q", r.Wrong(), a.EbpfGo, a.Outcome == NotTried, r.Unread)
			}
			if tt.wantReason != "" && a.Reason != tt.wantReason {
				t.Errorf("reason %q", a.Reason)
			}
		})
	}
}

// TestTrialExtern checks that libbpf loads no program of an object that lacks an extern.
func TestTrialExtern(t *testing.T) {
	rep, objects := report(t, rule.Fails, rule.Fails)
	other, _ := report(t, rule.MayFail, rule.MayFail)
	trial := NewTrial(rep, other, objects)
	for i := range rep.Programs {
		e := Event{Kind: Program, Name: rep.Programs[i].Name, Alone: "loads"}
		if i == 0 {
			e.Error, e.Errno, e.Extern, e.Alone = "kfunc x: not supported", 95, true, "kfunc x: not supported"
		}
		trial.Take(e)
	}
	if len(trial.Rows) < 2 {
		t.Fatal("too few programs to tell anything")
	}
	for i := range trial.Rows {
		if r := &trial.Rows[i]; r.Wrong() != "" || (r.Actual().EbpfGo == Loads) != (i > 0) {
			t.Errorf("%s: wrong %q, alone %q", r.Program.Name, r.Wrong(), r.Actual().EbpfGo)
		}
	}
}

// TestTables checks that each step is counted with its own prediction, and what the rows look like.
func TestTables(t *testing.T) {
	p := func(load, all rule.Status) *verdict.ProgramRow {
		return &verdict.ProgramRow{Object: "o", Name: "p", Load: []rule.Status{load}, Status: []rule.Status{all}}
	}
	notes := func(r *verdict.ProgramRow, codes ...rule.Code) *verdict.ProgramRow {
		for _, c := range codes {
			r.Notes = append(r.Notes, rule.Finding{Code: c})
		}
		return r
	}
	var tables Tables
	for _, r := range []Row{
		{Program: p(rule.OK, rule.OK), EbpfGo: p(rule.OK, rule.OK), got: &Event{Name: "p", Alone: Loads, Attach: Attached}},
		{Program: p(rule.Guarded, rule.Fails), EbpfGo: p(rule.Unknown, rule.Fails), got: &Event{Name: "p", Alone: Loads, Attach: "not attached: why"}},
		{Program: p(rule.OK, rule.OK), EbpfGo: p(rule.Fails, rule.Fails), got: &Event{Name: "p", Alone: "odd", Attach: "not attached: why"}},
		{Program: p(rule.MayFail, rule.MayFail), EbpfGo: p(rule.Guarded, rule.Guarded), got: &Event{Name: "p", Error: "no", Errno: 22, Alone: "no"}},
		{Program: p(rule.OK, rule.OK), EbpfGo: p(rule.OK, rule.OK)}, // not tried
		{Program: notes(p(rule.OK, rule.OK), rule.UnjudgedBounds), EbpfGo: p(rule.OK, rule.OK), got: &Event{Name: "p", Error: "no", Errno: 22, Alone: "no"}},
		{Program: notes(p(rule.Guarded, rule.MayFail), rule.UnjudgedWork, rule.UnjudgedBounds), EbpfGo: p(rule.OK, rule.OK), got: &Event{Name: "p", Alone: Loads, Attach: Attached}},
		{Program: notes(p(rule.Fails, rule.Fails), rule.UnjudgedWork), EbpfGo: p(rule.Fails, rule.Fails), got: &Event{Name: "p", Error: "no", Errno: 22, Alone: "no"}},
		{Program: notes(p(rule.OK, rule.OK), rule.RunningKernelBTF), EbpfGo: p(rule.OK, rule.OK), got: &Event{Name: "p", Alone: Loads}},
	} {
		tables.Add(&r)
	}
	for i, want := range []string{
		"|k|libbpf loads|3/0|1/0|1/1|0/1|0/0|0/1|",
		"|k|ebpf-go loads|2/0|0/1|1/1|0/0|1/0|0/2|",
		"|k|attached|1/1|0/0|0/0|1/0|0/0|0/1|",
	} {
		if got := tables[i].Row("k", Steps[i].Name); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got, want := tables[1].Surprises, []string{"predicted wrong: o: p: no", "predicted wrong: o: p: no"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	data, err := json.Marshal(tables[0].Counts())
	if want := `[{"verdict":"ok","loads":3,"fails":0},{"verdict":"guarded","loads":1,"fails":0},{"verdict":"may fail","loads":0,"fails":1},` +
		`{"verdict":"fails","loads":0,"fails":1},{"verdict":"ok","unjudged":true,"loads":1,"fails":1}]`; err != nil || string(data) != want {
		t.Errorf("%s, %v, want %s", data, err, want)
	}
	if got, want := Header()[0], "|kernel|step|ok|guarded|ok, not judged|may fail|unknown|fails|"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
