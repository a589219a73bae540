// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"cmp"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/check"
)

// Trial compares the report on one kernel with what that kernel, booted, does with the objects.
type Trial struct {
	Objects []int // indices of the report's objects that are for the kernel, in the guest's order
	Rows    []Row // their programs, in the report's order

	first []int // by object in the guest: its first row; and the number of rows
}

// Row is a program on the booted kernel.
type Row struct {
	Program *check.Program
	Got     *Event // what the kernel did with the program alone; nil if no event came
	Unread  string // why cilium/ebpf does not read the object unchanged; "" if it does

	whole *Event // why libbpf does not load the object; nil if it does
}

// NewTrial returns the trial of a report on one kernel about these objects.
func NewTrial(rep *check.Report, objects []*check.Object) *Trial {
	t := &Trial{first: []int{0}}
	n := 0
	for i, o := range objects {
		programs := rep.Programs[n:][:len(o.Programs)]
		n += len(programs)
		if len(programs) == 0 || programs[0].Status[0] == check.Other {
			continue
		}
		for j := range programs {
			t.Rows = append(t.Rows, Row{Program: &programs[j]})
		}
		t.first = append(t.first, len(t.Rows))
		t.Objects = append(t.Objects, i)
	}
	return t
}

// Of returns the rows of an object in the guest.
func (t *Trial) Of(object int) []Row { return t.Rows[t.first[object]:t.first[object+1]] }

// Take adds an event of the guest. It skips events that are not about a program here.
func (t *Trial) Take(e Event) {
	if e.Object < 0 || e.Object >= len(t.Objects) {
		return
	}
	rows := t.Of(e.Object)
	refusesObject := e.Kind == Object && e.Error != ""
	if e.Kind == Program {
		i := slices.IndexFunc(rows, func(r Row) bool { return r.Program.Name == e.Name })
		if i < 0 {
			return
		}
		rows[i].Got = &e
		refusesObject = e.Extern
	}
	for i := range rows {
		r := &rows[i]
		if refusesObject && r.whole == nil {
			r.whole = &e
		}
		if e.Kind == Object {
			r.Unread = cmp.Or(e.Alone, r.Unread)
		}
	}
}

// Refused returns why libbpf would not load the program, nil if it would.
func (r *Row) Refused() *Event {
	if r.whole != nil {
		return r.whole
	}
	if r.Got != nil && r.Got.Error != "" {
		return r.Got
	}
	return nil
}

// Attach returns [Attached], why the program was not attached, or "" if that was not tried.
func (r *Row) Attach() string {
	if r.Got == nil {
		return ""
	}
	return r.Got.Attach
}

// NotTried reports that the kernel was not given the program, because cilium/ebpf does not read it or something is missing.
func (r *Row) NotTried() bool {
	e := r.Refused()
	return e != nil && e.Errno == 0 || e == nil && r.Got == nil
}

// Missing returns for how many programs no result came, and how many others were not tried.
func (t *Trial) Missing() (lost, untried int) {
	for i := range t.Rows {
		switch row := &t.Rows[i]; {
		case row.Got == nil && row.Refused() == nil:
			lost++
		case row.NotTried():
			untried++
		}
	}
	return lost, untried
}

// Outcome returns the row for Table and Reason.
func (r *Row) Outcome() *Outcome {
	o := &Outcome{Program: r.Program.Name}
	if e := r.Refused(); e != nil {
		o.Errno, o.Log = e.Errno, cmp.Or(e.Log, strings.TrimPrefix(e.Error, "program "+e.Name+": "))
	}
	return o
}

// Alone returns what happens if cilium/ebpf loads the program by itself, "" if the result is the same.
func (r *Row) Alone() string {
	if r.Got == nil || r.NotTried() || (r.Got.Alone == "loads") == (r.Refused() == nil) {
		return ""
	}
	return strings.TrimPrefix(r.Got.Alone, "program "+r.Got.Name+": ")
}

// Actual is what happened to a program.
type Actual struct {
	Outcome string `json:"outcome"`          // loads, fails or not tried
	Reason  string `json:"reason,omitempty"` // why it fails or was not tried
	Errno   int    `json:"errno,omitempty"`
	Log     string `json:"log,omitempty"`     // the end of the verifier's log
	Attach  string `json:"attach,omitempty"`  // attached, or why not; empty if not tried
	EbpfGo  string `json:"ebpf_go,omitempty"` // result of cilium/ebpf, if it differs: loads, or why not
}

// Actual returns what happened to the program.
func (r *Row) Actual() Actual {
	a := Actual{Outcome: "loads", Attach: r.Attach(), EbpfGo: cmp.Or(r.Alone(), r.Unread)}
	e := r.Refused()
	switch {
	case r.NotTried() && e == nil:
		a.Outcome, a.Reason = "not tried", "no result"
	case r.NotTried():
		a.Outcome, a.Reason = "not tried", e.Error
	case e != nil:
		a.Outcome, a.Reason, a.Errno, a.Log = "fails", r.Outcome().Reason(), e.Errno, e.Log
	}
	return a
}

// Wrong returns how the verdict was wrong, "" if it was right or makes no claim.
func (r *Row) Wrong() string {
	load, all := r.Program.Load[0], r.Program.Status[0]
	refused := r.Refused() != nil
	switch {
	case r.NotTried():
		return ""
	case refused && load <= check.Guarded:
		return "was to load, but does not"
	case !refused && load == check.Fails:
		return "was to fail, but loads"
	case refused || r.Attach() == "":
		return ""
	case r.Attach() != Attached && all <= check.Guarded:
		return "was to attach, but does not"
	case r.Attach() == Attached && all == check.Fails:
		return "was not to attach, but does"
	}
	return ""
}
