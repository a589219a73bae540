// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"cmp"
	"strings"

	"github.com/btfgen/btfgen/internal/boot"
	"github.com/btfgen/btfgen/internal/check"
)

// Trial holds the report on one kernel against what that kernel, booted, makes of the objects.
type Trial struct {
	Objects []int // those that are for the kernel, in the order in which the guest has them: indices of the report's objects
	Rows    []Row // their programs, in the report's order

	at     map[rowKey]int
	first  []int               // by object in the guest: its first row; and the number of rows
	whole  map[int]*boot.Event // by object in the guest: why libbpf loads none of its programs
	unread map[int]string      // by object in the guest: why cilium/ebpf does not read it
}

type rowKey struct {
	object int // in the guest
	name   string
}

// Row is a program on the booted kernel.
type Row struct {
	Program *check.Program
	Got     *boot.Event // what came of the program alone; nil for nothing

	// Unread is why cilium/ebpf does not read the object as it is; empty if it does.
	Unread string

	whole *boot.Event // why libbpf does not load the object; nil if it does
}

// NewTrial returns the trial of a report on one kernel about these objects.
func NewTrial(rep *check.Report, objects []*check.Object) *Trial {
	t := &Trial{at: make(map[rowKey]int), whole: make(map[int]*boot.Event), unread: make(map[int]string)}
	n := 0
	for i, o := range objects {
		programs := rep.Programs[n:][:len(o.Programs)]
		n += len(programs)
		if len(programs) == 0 || programs[0].Status[0] == check.Other {
			continue
		}
		t.first = append(t.first, len(t.Rows))
		for j := range programs {
			t.at[rowKey{len(t.Objects), programs[j].Name}] = len(t.Rows)
			t.Rows = append(t.Rows, Row{Program: &programs[j]})
		}
		t.Objects = append(t.Objects, i)
	}
	t.first = append(t.first, len(t.Rows))
	return t
}

// Take takes an event of the guest. What is about no program here is left out.
func (t *Trial) Take(e boot.Event) {
	switch e.Kind {
	case boot.Program:
		if i, ok := t.at[rowKey{e.Object, e.Name}]; ok {
			t.Rows[i].Got = &e
			if e.Extern {
				t.refuse(&e)
			}
		}
	case boot.Object:
		if e.Object < 0 || e.Object >= len(t.Objects) {
			return
		}
		if e.Error != "" {
			t.refuse(&e)
		}
		if e.Alone != "" {
			t.unread[e.Object] = e.Alone
		}
	}
}

// refuse notes the first reason not to load an object.
func (t *Trial) refuse(e *boot.Event) {
	if t.whole[e.Object] == nil {
		t.whole[e.Object] = e
	}
}

// Done completes the rows of an object in the guest when no more events about it come, and returns them.
func (t *Trial) Done(object int) []Row {
	rows := t.Rows[t.first[object]:t.first[object+1]]
	for i := range rows {
		rows[i].whole, rows[i].Unread = t.whole[object], t.unread[object]
	}
	return rows
}

// Refused returns why the program is not loaded as libbpf does it, nil if it is.
func (r *Row) Refused() *boot.Event {
	if r.whole != nil {
		return r.whole
	}
	if r.Got != nil && r.Got.Error != "" {
		return r.Got
	}
	return nil
}

// Attach is whether the program was attached: boot.Attached, why not, or empty where that was not tried.
func (r *Row) Attach() string {
	if r.Got == nil {
		return ""
	}
	return r.Got.Attach
}

// Untold says whether the program was not tried, as cilium/ebpf does not read it or something is not known, which tells nothing of the kernel.
func (r *Row) Untold() bool {
	e := r.Refused()
	return e != nil && e.Errno == 0 || e == nil && r.Got == nil
}

// Outcome is what Table and Reason take.
func (r *Row) Outcome() *Outcome {
	o := &Outcome{Program: r.Program.Name}
	if e := r.Refused(); e != nil {
		o.Errno, o.Log = e.Errno, cmp.Or(e.Log, strings.TrimPrefix(e.Error, "program "+e.Name+": "))
	}
	return o
}

// Alone is what comes of the program where cilium/ebpf loads it by itself and that differs; else it is empty.
func (r *Row) Alone() string {
	if r.Got == nil || r.Untold() || (r.Got.Alone == "loads") == (r.Refused() == nil) {
		return ""
	}
	return strings.TrimPrefix(r.Got.Alone, "program "+r.Got.Name+": ")
}

// Wrong says how the verdict was wrong, "" if it was not or does not say.
func (r *Row) Wrong() string {
	load, all := r.Program.Load[0], r.Program.Status[0]
	refused := r.Refused() != nil
	switch {
	case r.Untold():
		return ""
	case refused && load <= check.Guarded:
		return "was to load, but does not"
	case !refused && load == check.Fails:
		return "was to fail, but loads"
	case refused || r.Attach() == "":
		return ""
	case r.Attach() != boot.Attached && all <= check.Guarded:
		return "was to attach, but does not"
	case r.Attach() == boot.Attached && all == check.Fails:
		return "was not to attach, but does"
	}
	return ""
}
